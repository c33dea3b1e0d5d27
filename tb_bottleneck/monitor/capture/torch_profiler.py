"""The one door to torch.profiler: makes ours, and stands aside for the training's own."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.capture.trace_capture import Profiler, TraceCapture
from tb_bottleneck.monitor.hooks.hook_context import HookContext


def new_profiler(steps: int) -> Profiler:
    """A profiler for one step of warm-up and so many of recording.

    Shapes are recorded for the roofline. Stacks are, because without Python frames nobody can tell a checkpoint from a
    metric; on top of shapes they cost no more than the noise. Measured on a model of 120 tiny layers on a CPU: 7.5 ms a
    step without a profiler, 17 ms bare, 15 to 27 ms with shapes, with or without stacks.
    """
    torch_profiler = _torch_profiler()
    made: Profiler = torch_profiler.profile(
        activities=torch_profiler.supported_activities(),
        schedule=torch_profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        record_shapes=True,
        with_stack=True,
    )
    return made


def _torch_profiler() -> Any:
    # Untyped in part, so all of it is Any here.
    import torch.profiler

    return torch.profiler


def is_profiling() -> bool:
    """Whether any profiler records now, on any thread. It is asked in every step."""
    return bool(sys.modules["torch.autograd.profiler"]._is_profiler_enabled)


class OtherProfilers:
    """Hears of profilers that the training begins, also those that still warm up, and drops our window for them.

    Two recordings at a time crash torch (seen with 2.13: a segmentation fault while one is exported). Heard is what
    each of torch's profilers ends in, because a profile that was made before us holds on to its own methods.
    """

    def __init__(self, at: HookContext) -> None:
        self._at = at
        self._theirs = 0
        self.captures: TraceCapture | None = None

    def install(self) -> None:
        """Replaces what begins and ends a recording."""
        from torch.autograd.profiler import profile

        self._at.patches.replace(profile, "_prepare_trace", functools.partial(self._heard, change=1))
        self._at.patches.replace(profile, "__exit__", functools.partial(self._heard, change=-1))

    def busy(self) -> bool:
        """Whether another profiler than ours is at work."""
        return self._theirs > 0 or is_profiling()

    def _heard(self, original: Callable[..., Any], change: int) -> Callable[..., Any]:
        @functools.wraps(original)
        def heard(*arguments: Any, **options: Any) -> Any:
            captures = self.captures
            if self._at.patches.live and captures is not None and not captures.is_ours_now():
                self._theirs = max(0, self._theirs + change)
                if change > 0:
                    captures.stand_aside(at_once=self._at.clock.is_mine())
            return original(*arguments, **options)

        return heard
