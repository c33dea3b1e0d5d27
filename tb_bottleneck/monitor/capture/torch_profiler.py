"""The only module that uses torch.profiler: creates the monitor's profilers, and detects the training's own."""

import functools
from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.capture.trace_capture import Profiler, TraceCapture
from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.torch_internals import is_profiling, profiler_methods


def new_profiler(steps: int) -> Profiler:
    """Returns a profiler for one step of warm-up and `steps` recorded steps.

    It records shapes for the roofline, and stacks because a checkpoint and a metric differ only in their Python frames;
    in addition to shapes, stacks cost no more than the noise. Measured on a model of 120 tiny layers on a CPU: 7.5 ms
    per step without a profiler, 17 ms with a plain one, 15 to 27 ms with shapes, with or without stacks.
    """
    torch_profiler = _torch_profiler()
    profiler: Profiler = torch_profiler.profile(
        activities=torch_profiler.supported_activities(),
        schedule=torch_profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        record_shapes=True,
        with_stack=True,
    )
    return profiler


def _torch_profiler() -> Any:
    # Partly untyped, so Any here.
    import torch.profiler

    return torch.profiler


class OtherProfilers:
    """Counts profilers that the training itself starts, including warming-up ones, and cancels our recording for them.

    Two simultaneous recordings crash torch (seen with 2.13: a segmentation fault while one is exported). The hooked
    methods are those that every profiler of torch calls last, because a profiler created before the monitor holds
    references to its own methods.
    """

    def __init__(self, context: HookContext) -> None:
        self._context = context
        self._running = 0

    def install(self, capture: TraceCapture) -> None:
        """Replaces the methods that begin and end a recording. `capture` is cancelled when another one begins."""
        owner, begin, end = profiler_methods()
        replace = self._context.patches.replace
        replace(owner, begin, functools.partial(self._counted, capture=capture, change=1))
        replace(owner, end, functools.partial(self._counted, capture=capture, change=-1))

    def busy(self) -> bool:
        """Returns True if another profiler than ours is running."""
        return self._running > 0 or is_profiling()

    def _counted(self, original: Callable[..., Any], capture: TraceCapture, change: int) -> Callable[..., Any]:
        @functools.wraps(original)
        def counted(*arguments: Any, **options: Any) -> Any:
            if self._context.patches.live and not capture.is_own_call():
                self._running = max(0, self._running + change)
                if change > 0:
                    capture.cancel(at_once=self._context.clock.is_training_thread())
            return original(*arguments, **options)

        return counted
