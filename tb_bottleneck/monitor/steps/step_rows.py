"""Finished steps on their way from the training thread to the file, bounded in number and in rate."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from tb_bottleneck.schema.signals import STEP_COLUMNS

COLUMNS = tuple(STEP_COLUMNS)

MAX_WAITING = 20_000
"""Rows kept while the writer is late; at 100 steps a second that is more than three minutes."""


@dataclass(slots=True)
class StepRow:
    """One step. Its figures are filled until it is handed on, and never after.

    `end_ns` is the monitor's clock (`time.perf_counter_ns`), `wall_ns` reaches back to the end of the step before.
    A figure that is absent is not known for this step.
    """

    number: int
    end_ns: int
    wall_ns: int
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def working_ns(self) -> float:
        """Wall time without the evaluation that lay in this step."""
        return self.wall_ns - self.figures.get("evaluation", 0.0)


class RowQueue:
    """Rows between the two threads: the training adds and never waits, the oldest fall out where there are too many."""

    def __init__(self, limit: int = MAX_WAITING) -> None:
        self._rows: deque[StepRow] = deque(maxlen=limit)

    def add(self, row: StepRow) -> None:
        """Hands a row on; whoever does must not touch it again."""
        self._rows.append(row)

    def take(self) -> list[StepRow]:
        """The rows since the last call."""
        return [self._rows.popleft() for _ in range(len(self._rows))]


class RowRateLimiter:
    """Lets through every step of a slow loop, and a part of the steps of a fast one, so that the file stays small.

    Steps up to `burst` pass whole. After them `per_second` pass on average, and each step that took `outlier` times the
    usual, because those are what one looks for.
    """

    def __init__(self, burst: int = 1000, per_second: float = 25.0, outlier: float = 3.0) -> None:
        self._credit = float(burst)
        self._burst = float(burst)
        self._per_second = per_second
        self._outlier = outlier
        self._usual: deque[int] = deque(maxlen=101)
        self.left_out = 0

    def keep(self, rows: list[StepRow]) -> list[StepRow]:
        """The rows to write."""
        kept = [row for row in rows if self._passes(row, self._median())]
        self.left_out += len(rows) - len(kept)
        return kept

    def _median(self) -> float:
        return median(self._usual) if self._usual else float("inf")

    def _passes(self, row: StepRow, usual: float) -> bool:
        self._usual.append(row.wall_ns)
        self._credit = min(self._burst, self._credit + self._per_second * row.wall_ns / 1e9)
        if self._credit >= 1:
            self._credit -= 1
            return True
        return row.wall_ns >= self._outlier * usual
