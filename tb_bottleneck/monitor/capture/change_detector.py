"""Notices from simple ratios that a run is no longer what it was when it was last recorded."""

from dataclasses import dataclass
from statistics import median

from tb_bottleneck.monitor.steps.step_rows import StepRow

WINDOW_STEPS = 30
WINDOW_NS = 10_000_000_000
LOADER_SHARE_CHANGE = 0.15
"""Of the step, absolute: well above what bursts of the loader's workers do to a window of 30 steps."""
STEP_TIME_CHANGE = 1.3
"""Either way. Both are choices: a trace costs seconds, so a change must be worth one."""


@dataclass(frozen=True, slots=True)
class _Ratios:
    loader_share: float | None
    step_ns: float

    def differ(self, other: "_Ratios") -> str | None:
        if self.loader_share is not None and other.loader_share is not None:
            change = self.loader_share - other.loader_share
            if abs(change) >= LOADER_SHARE_CHANGE:
                return f"the loader's share of the step {'rose' if change > 0 else 'fell'}"
        ratio = self.step_ns / max(other.step_ns, 1.0)
        if ratio >= STEP_TIME_CHANGE or ratio <= 1 / STEP_TIME_CHANGE:
            return f"steps became {'longer' if ratio > 1 else 'shorter'}"
        return None


class ChangeDetector:
    """Compares windows of at least 30 steps and 10 s with the one after the last trace; two in a row must differ
    alike."""

    def __init__(self) -> None:
        self._window: list[StepRow] = []
        self._usual: _Ratios | None = None
        self._suspected: str | None = None

    def start_anew(self) -> None:
        """A trace was just taken: what follows is the usual."""
        self._window.clear()
        self._usual = self._suspected = None

    def look(self, rows: list[StepRow]) -> str | None:
        """What changed, in words; None where nothing did, or it is too early to tell. Profiled steps are left out."""
        told = None
        for row in rows:
            if row.figures.get("profiled"):
                continue
            self._window.append(row)
            if self._is_full():
                told = self._compare(_ratios(self._window)) or told
                self._window.clear()
        return told

    def _is_full(self) -> bool:
        return len(self._window) >= WINDOW_STEPS and sum(row.wall_ns for row in self._window) >= WINDOW_NS

    def _compare(self, now: _Ratios) -> str | None:
        if self._usual is None:
            self._usual = now
            return None
        before, self._suspected = self._suspected, now.differ(self._usual)
        return self._suspected if self._suspected == before else None


def _ratios(rows: list[StepRow]) -> _Ratios:
    told = [row for row in rows if "loader_wait" in row.figures]
    working = sum(row.working_ns for row in told)
    share = sum(row.figures["loader_wait"] for row in told) / working if working > 0 else None
    return _Ratios(share, median(row.working_ns for row in rows))
