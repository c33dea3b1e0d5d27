"""What the monitor needs of torch.cuda and torch.xpu: timing events, and the counters and snapshots of the allocator.

The monitor must not initialise a device: a process that is forked after that cannot use the device. Functions that
would initialise a device say so, and the monitor calls them only after the training has initialised the device.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

from tb_bottleneck.monitor.steps.device_timing import TimingEvent

COUNTERS = {
    "device_allocations": "num_device_alloc",
    "device_frees": "num_device_free",
    "allocation_retries": "num_alloc_retries",
}
"""A dict: step column (a figure of a step, schema/signals.py) -> name of the counter in torch's memory statistics."""

GAUGES = {
    "memory_allocated": ("allocated_bytes", "current"),
    "memory_allocated_peak": ("allocated_bytes", "peak"),
    "memory_reserved": ("reserved_bytes", "current"),
}
"""A dict: step column -> (name of the statistic, name of its value) in torch's memory statistics."""

READ_EVERY_NS = 1_000_000_000
"""Minimum interval in ns between two readings of the allocator. A reading takes about 50 µs: torch builds a dict."""


def _torch() -> Any:
    # torch.cuda and torch.xpu are partly untyped, so the type is Any.
    import torch

    return torch


def is_available() -> bool:
    """Returns True if torch could use an accelerator with streams and events like CUDA's.

    Uses `device_count()`, which torch takes from the driver's management library. `torch.cuda.is_available()` would
    initialise CUDA, after which no forked process can use a GPU: a training script that forks its ranks would fail.
    """
    torch = _torch()
    return bool(torch.cuda.device_count() or torch.xpu.device_count())


def own_gpu(torch: Any) -> int:
    """Returns the index of the GPU that this process works on: the GPU with the most reserved memory, or the current
    device if no GPU has reserved memory.

    The current device alone is not enough: each thread has its own, and the monitor's thread never sets one.
    Initialises CUDA if CUDA is not initialised yet.
    """
    reserved = [torch.cuda.memory_reserved(index) for index in range(torch.cuda.device_count())]
    return reserved.index(max(reserved)) if any(reserved) else int(torch.cuda.current_device())


def new_event() -> TimingEvent | None:
    """Returns a new timing event of torch.cuda or torch.xpu, or None while no device is initialised."""
    torch = _torch()
    if torch.cuda.is_initialized():
        return cast(TimingEvent, torch.cuda.Event(enable_timing=True))
    if torch.xpu.is_initialized():
        return cast(TimingEvent, torch.xpu.Event(enable_timing=True))
    return None


def is_capturing() -> bool:
    """Returns True while a CUDA graph is being captured on the current stream."""
    torch = _torch()
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def synchronize() -> None:
    """Waits until all devices in use have done their work. Does nothing while a CUDA graph is being captured.

    For `tb-bottleneck try` only: the monitor never waits for a device."""
    torch = _torch()
    if is_capturing():
        return
    if torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            if torch.cuda.memory_reserved(index):  # waiting for an unused device would create a context on it
                torch.cuda.synchronize(index)
    xpu = getattr(torch, "xpu", None)  # old versions of torch have none
    if xpu is not None and xpu.is_initialized():
        xpu.synchronize()


def allocator_counts() -> Mapping[str, Any]:
    """Returns torch's memory statistics of the current CUDA device as nested dicts; empty while CUDA is not
    initialised."""
    torch = _torch()
    if not torch.cuda.is_initialized():
        return {}
    return cast(Mapping[str, Any], torch.cuda.memory_stats_as_nested_dict())


def pinned_bytes() -> float | None:
    """Returns the bytes of host memory that torch's host allocator has pinned, in use or cached. None while CUDA is not
    initialised, or if torch does not count these bytes."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized() or not hasattr(torch.cuda, "host_memory_stats"):
        return None
    value = torch.cuda.host_memory_stats().get("allocated_bytes.current")
    return None if value is None else float(value)


class AllocatorCounters:
    """Reads the allocator's bytes in use, and the changes of its counters since the last reading.

    `counts` returns torch's memory statistics, as `allocator_counts` does."""

    def __init__(self, counts: Callable[[], Mapping[str, Any]] = allocator_counts) -> None:
        self._counts = counts
        self._before: dict[str, int] = {}
        self._read_at: int | None = None

    def read(self, now: int) -> dict[str, float]:
        """Returns a dict: step column -> value. A value is a current number of bytes, or the change of a counter since
        the last reading.

        `now` is a time in ns. The first reading has no changes. The dict is empty within READ_EVERY_NS of the last
        reading."""
        if self._read_at is not None and now - self._read_at < READ_EVERY_NS:
            return {}
        self._read_at = now
        counts = self._counts()
        after = {column: int(counts[name]) for column, name in COUNTERS.items() if name in counts}
        before, self._before = self._before, after
        gauges = {column: counts[name]["all"][which] for column, (name, which) in GAUGES.items() if name in counts}
        changes = {column: after[column] - before[column] for column in after if column in before}
        return {column: float(value) for column, value in {**gauges, **changes}.items()}


class MemoryHistory:
    """Access to the history of allocator calls and to allocator snapshots, through torch.cuda.memory.

    Only for use after `ready` has returned True."""

    def ready(self) -> bool:
        """Returns True once CUDA is in use."""
        return bool(_torch().cuda.is_initialized())

    def record_history(self, entries: int) -> None:
        """Starts to record the last `entries` allocator calls with their Python stacks. With 0, ends the recording."""
        memory = _torch().cuda.memory
        if entries:
            memory._record_memory_history("all", "all", "python", entries)
        else:
            memory._record_memory_history(None)

    def snapshot(self) -> Any:
        """Returns the allocator's snapshot as dicts and lists, as `torch.cuda.memory._snapshot` does."""
        return _torch().cuda.memory._snapshot()

    def on_out_of_memory(self, call: Callable[[], None]) -> None:
        """Registers `call`, which torch then calls at each allocation that fails for lack of memory."""
        _torch()._C._cuda_attach_out_of_memory_observer(lambda *facts: call())
