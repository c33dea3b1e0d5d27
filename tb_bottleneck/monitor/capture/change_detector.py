"""Detects from simple ratios that a run has changed since its last trace."""

from dataclasses import dataclass
from statistics import median

from tb_bottleneck.monitor.steps.row_queue import StepRow

WINDOW_STEPS = 30
WINDOW_NS = 3_000_000_000
MAX_TIMES = 512
"""Maximum number of step times that a window keeps for their median. They are spread evenly over the window."""
LOADER_SHARE_CHANGE = 0.15
"""Smallest change of the loader's share of the step time that counts, as a difference of shares. The limit is well
above the changes that bursts of workers cause in 30 steps."""
STEP_TIME_CHANGE = 1.3
"""Smallest factor that counts if steps become longer or shorter. This limit and LOADER_SHARE_CHANGE are choices: a
trace costs seconds of the training."""


@dataclass(frozen=True, slots=True)
class _Ratios:
    loader_share: float | None
    step_ns: float

    def difference(self, other: "_Ratios") -> str | None:
        if self.loader_share is not None and other.loader_share is not None:
            change = self.loader_share - other.loader_share
            if abs(change) >= LOADER_SHARE_CHANGE:
                return f"the loader's share of the step {'rose' if change > 0 else 'fell'}"
        ratio = self.step_ns / max(other.step_ns, 1.0)
        if ratio >= STEP_TIME_CHANGE or ratio <= 1 / STEP_TIME_CHANGE:
            return f"steps became {'longer' if ratio > 1 else 'shorter'}"
        return None


class _Window:
    """Sums over consecutive steps. Needs limited memory, and limited time per step, however many steps are added."""

    def __init__(self) -> None:
        self.steps = 0
        self.wall_ns = 0.0
        self._wait_ns = self._working_ns = 0.0  # of the steps with a wait
        self._times: list[float] = []  # of every stride-th step
        self._stride = 1

    def add(self, row: StepRow) -> None:
        """Adds the step `row` to the window."""
        if self.steps % self._stride == 0:
            self._times.append(row.working_ns)
            if len(self._times) == MAX_TIMES:
                del self._times[1::2]
                self._stride *= 2
        self.steps += 1
        self.wall_ns += row.wall_ns
        wait = row.figures.get("loader_wait")
        if wait is not None:
            self._wait_ns += wait
            self._working_ns += row.working_ns

    def is_full(self) -> bool:
        """Returns True if the window has enough steps and time (WINDOW_STEPS, WINDOW_NS) to be compared."""
        return self.steps >= WINDOW_STEPS and self.wall_ns >= WINDOW_NS

    def ratios(self) -> _Ratios:
        """Returns the figures by which windows are compared: the loader's share of the step time (None if no step has a
        wait), and the median step time. The window must have at least one step."""
        share = self._wait_ns / self._working_ns if self._working_ns > 0 else None
        return _Ratios(share, median(self._times))


class ChangeDetector:
    """Compares windows of consecutive steps (at least 30 steps and 3 s) with the first window after the last trace.

    A change counts if two successive windows differ from this first window in the same way."""

    def __init__(self) -> None:
        self._window = _Window()
        self._reference: _Ratios | None = None
        self._suspected: str | None = None

    def reset(self) -> None:
        """Starts again after a trace: the next window becomes the reference."""
        self._window = _Window()
        self._reference = self._suspected = None

    def add(self, rows: list[StepRow]) -> str | None:
        """Adds the steps `rows`. Returns the detected change as text, or None if there is none. Profiled steps are
        ignored."""
        change = None
        for row in rows:
            if row.figures.get("profiled"):
                continue
            self._window.add(row)
            if self._window.is_full():
                change = self._compare(self._window.ratios()) or change
                self._window = _Window()
        return change

    def _compare(self, ratios: _Ratios) -> str | None:
        if self._reference is None:
            self._reference = ratios
            return None
        before, self._suspected = self._suspected, ratios.difference(self._reference)
        return self._suspected if self._suspected == before else None
