"""Rows of finished steps on their way from the training thread to the file, limited in number and rate."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from tb_bottleneck.schema.signals import STEP_COLUMNS

COLUMNS = tuple(STEP_COLUMNS)

MAX_WAITING = 20_000
"""Rows kept while the writer is late; at 100 steps per second, more than three minutes."""
MEDIAN_EVERY = 25


@dataclass(slots=True)
class StepRow:
    """One step. Its figures change only until the row is passed on.

    `end_ns` is on the monitor's clock (`time.perf_counter_ns`); `wall_ns` is the time since the end of the previous
    step. A missing figure is unknown for this step.
    """

    number: int
    end_ns: int
    wall_ns: int
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def working_ns(self) -> float:
        """Wall time without evaluation."""
        return self.wall_ns - self.figures.get("evaluation", 0.0)


class RowQueue:
    """A queue from the training thread to the writer. Adding never blocks; at the limit, the oldest row is dropped."""

    def __init__(self, limit: int = MAX_WAITING) -> None:
        self._rows: deque[StepRow] = deque(maxlen=limit)

    def add(self, row: StepRow) -> None:
        """Passes a row on; the caller must not change it afterwards."""
        self._rows.append(row)

    def take(self) -> list[StepRow]:
        """Returns the rows since the last call."""
        return [self._rows.popleft() for _ in range(len(self._rows))]


class RowRateLimiter:
    """Passes every step of a slow loop and a part of the steps of a fast one, so that the file stays small.

    The first `burst` steps pass. After them, `per_second` pass on average, and each step of at least `outlier` times
    the median, because such steps are the interesting ones. The median is that of the last 101 steps, and is computed
    every 25 steps.
    """

    def __init__(self, burst: int = 1000, per_second: float = 25.0, outlier: float = 3.0) -> None:
        self._credit = float(burst)
        self._burst = float(burst)
        self._per_second = per_second
        self._outlier = outlier
        self._recent_ns: deque[int] = deque(maxlen=101)
        self._median_ns = float("inf")
        self._steps = 0
        self.left_out = 0

    def filter(self, rows: list[StepRow]) -> list[StepRow]:
        """Returns the rows to write."""
        passed = [row for row in rows if self._passes(row)]
        self.left_out += len(rows) - len(passed)
        return passed

    def _passes(self, row: StepRow) -> bool:
        if self._recent_ns and self._steps % MEDIAN_EVERY == 0:
            self._median_ns = median(self._recent_ns)  # of each step, it took most of the thread's time
        self._steps += 1
        self._recent_ns.append(row.wall_ns)
        self._credit = min(self._burst, self._credit + self._per_second * row.wall_ns / 1e9)
        if self._credit >= 1:
            self._credit -= 1
            return True
        return row.wall_ns >= self._outlier * self._median_ns
