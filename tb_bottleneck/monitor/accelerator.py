"""The one door to the accelerator that torch uses: events to time it with, and what its allocator counts.

Nothing here makes torch begin to use a device: that is the training's to do, and a process that has begun cannot fork
loader workers which use one.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from tb_bottleneck.monitor.steps.device_timing import TimingEvent

COUNTED = {
    "device_allocations": "num_device_alloc",
    "device_frees": "num_device_free",
    "allocation_retries": "num_alloc_retries",
}
"""Step columns, and what torch calls them."""

ASK_EVERY_NS = 1_000_000_000
"""Between two looks at the allocator: one look builds a large dict, which takes some 50 µs."""


def _torch() -> Any:
    # Untyped in part, so all of it is Any here.
    import torch

    return torch


def is_there() -> bool:
    """Whether torch could use an accelerator that has streams and events as CUDA has them.

    Counted, because torch counts devices by the driver's management library. `torch.cuda.is_available()` asks CUDA
    itself, and from then on no process that is forked from this one can use a GPU: a training that forks its ranks
    would fail.
    """
    torch = _torch()
    return bool(torch.cuda.device_count() or torch.xpu.device_count())


def own_gpu(torch: Any) -> int:
    """The index of the GPU that this process works on: the one on which it holds the most memory, the current one where
    it holds none yet. Which one is current is a matter of the thread that asks, and the monitor's own thread has never
    chosen one.
    """
    held = [torch.cuda.memory_reserved(index) for index in range(torch.cuda.device_count())]
    return held.index(max(held)) if any(held) else int(torch.cuda.current_device())


def new_event() -> TimingEvent | None:
    """An event that tells time, None as long as no such device is in use."""
    torch = _torch()
    if torch.cuda.is_initialized():
        return cast(TimingEvent, torch.cuda.Event(enable_timing=True))
    if torch.xpu.is_initialized():
        return cast(TimingEvent, torch.xpu.Event(enable_timing=True))
    return None


def is_capturing() -> bool:
    """Whether the current stream is in the capture of a graph."""
    torch = _torch()
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def allocator_counts() -> Mapping[str, Any]:
    """What CUDA's allocator counted since the process began; empty as long as it is not in use."""
    torch = _torch()
    if not torch.cuda.is_initialized():
        return {}
    return cast(Mapping[str, Any], torch.cuda.memory_stats_as_nested_dict())


class AllocatorCounters:
    """Differences of the allocator's counts, from one look to the next."""

    def __init__(self, counts: Callable[[], Mapping[str, Any]] = allocator_counts) -> None:
        self._counts = counts
        self._before: dict[str, int] = {}
        self._asked_at: int | None = None

    def look(self, now: int) -> dict[str, float]:
        """Figures by step column; empty where the last look was a moment ago, and at the first look."""
        if self._asked_at is not None and now - self._asked_at < ASK_EVERY_NS:
            return {}
        self._asked_at = now
        counts = self._counts()
        after = {column: int(counts[name]) for column, name in COUNTED.items() if name in counts}
        before, self._before = self._before, after
        return {column: float(after[column] - before[column]) for column in after if column in before}
