"""What every hook works with."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from tb_bottleneck.monitor.facts.loader import LoaderFacts
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.patches import Patches
from tb_bottleneck.monitor.steps.device_timing import DeviceSpans
from tb_bottleneck.monitor.steps.step_clock import StepClock


@dataclass(frozen=True, slots=True)
class HookContext:
    """The monitor's parts that hooks report to. `seen` is given every model and optimizer; `compiling` is
    `torch.compiler.is_compiling`."""

    clock: StepClock
    guard: Guard
    patches: Patches
    spans: DeviceSpans
    loaders: LoaderFacts
    seen: Callable[[str, Any], None]
    compiling: Callable[[], bool]

    def listens(self, signal: str) -> bool:
        """Whether a hook may work now: the monitor is on, this is the training thread, and the signal never failed.

        Where torch.compile traces through a hook it must find nothing in it, so that is asked first.
        """
        if self.compiling() or not self.patches.live or signal in self.guard.off:
            return False
        thread = self.clock.thread
        return thread is None or thread == get_ident()
