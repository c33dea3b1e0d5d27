"""The CPU time of the training thread in each step: what is left of the step, the thread waited or slept."""

import time
from collections.abc import Callable

from tb_bottleneck.monitor.steps.step_rows import StepRow


class ThreadTime:
    """Takes differences of the thread's CPU clock. For the training thread."""

    def __init__(self, now: Callable[[], int] = time.thread_time_ns) -> None:
        self._now = now
        self._last: int | None = None

    def add_to(self, row: StepRow) -> None:
        """Adds the time since the last row. The first row has none, nor one after which another thread's clock was
        read: an optimizer inside the backward pass may end a step on a thread of autograd."""
        spent = self._now()
        if self._last is not None and spent >= self._last:
            row.figures["thread_cpu"] = float(spent - self._last)
        self._last = spent
