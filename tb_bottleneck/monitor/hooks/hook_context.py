"""The parts of the monitor that hooks use."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from tb_bottleneck.monitor.facts.loader import LoaderFacts
from tb_bottleneck.monitor.guard import Guard, Patches
from tb_bottleneck.monitor.steps.device_timing import DeviceSpans
from tb_bottleneck.monitor.steps.step_clock import StepClock
from tb_bottleneck.monitor.workers.loader_stacks import LoaderStacks


@dataclass(frozen=True, slots=True)
class HookContext:
    """The parts of the monitor that hooks report to.

    `add_facts` is called with ("optimizer" or "model", object); `compiling` is `torch.compiler.is_compiling`.
    `patches` replaces and restores attributes of torch, and `loaders` collects facts about DataLoaders.
    """

    clock: StepClock
    guard: Guard
    patches: Patches
    spans: DeviceSpans
    loaders: LoaderFacts
    add_facts: Callable[[str, Any], None]
    compiling: Callable[[], bool]
    stacks: LoaderStacks | None = None
    """Collects what worker processes run, unless the user has switched that off."""

    def is_active(self, signal: str) -> bool:
        """Returns True if a hook may work: the monitor is on, this is the training thread, and `signal` has not failed.

        `compiling` comes first: torch.compile traces hooks, and must find no monitor code in them."""
        if self.compiling() or not self.patches.live or signal in self.guard.off:
            return False
        thread = self.clock.thread
        return thread is None or thread == get_ident()
