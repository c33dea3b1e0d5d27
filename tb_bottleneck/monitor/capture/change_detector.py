"""Detects from simple ratios that a run has changed since its last trace."""

from dataclasses import dataclass
from statistics import median

from tb_bottleneck.monitor.steps.step_rows import StepRow

WINDOW_STEPS = 30
WINDOW_NS = 10_000_000_000
LOADER_SHARE_CHANGE = 0.15
"""Absolute change of the loader's share of the step: well above what bursts of workers cause in 30 steps."""
STEP_TIME_CHANGE = 1.3
"""Change of the step time, either way. Both are choices: a trace costs seconds, so a change must be worth one."""


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


class ChangeDetector:
    """Compares windows of at least 30 steps and 10 s with the first one after the last trace.

    A change counts if two successive windows differ in the same way.
    """

    def __init__(self) -> None:
        self._window: list[StepRow] = []
        self._reference: _Ratios | None = None
        self._suspected: str | None = None

    def reset(self) -> None:
        """Starts again after a trace: the next window becomes the reference."""
        self._window.clear()
        self._reference = self._suspected = None

    def add(self, rows: list[StepRow]) -> str | None:
        """Returns the detected change as text, or None if there is none yet. Profiled steps do not count."""
        change = None
        for row in rows:
            if row.figures.get("profiled"):
                continue
            self._window.append(row)
            if self._is_full():
                change = self._compare(_ratios(self._window)) or change
                self._window.clear()
        return change

    def _is_full(self) -> bool:
        return len(self._window) >= WINDOW_STEPS and sum(row.wall_ns for row in self._window) >= WINDOW_NS

    def _compare(self, ratios: _Ratios) -> str | None:
        if self._reference is None:
            self._reference = ratios
            return None
        before, self._suspected = self._suspected, ratios.difference(self._reference)
        return self._suspected if self._suspected == before else None


def _ratios(rows: list[StepRow]) -> _Ratios:
    with_wait = [row for row in rows if "loader_wait" in row.figures]
    working = sum(row.working_ns for row in with_wait)
    share = sum(row.figures["loader_wait"] for row in with_wait) / working if working > 0 else None
    return _Ratios(share, median(row.working_ns for row in rows))
