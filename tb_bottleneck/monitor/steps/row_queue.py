"""Rows of finished steps on their way from the training thread to the file, limited in number and rate."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from tb_bottleneck.schema.signals import SPARSE_COUNTS, STEP_COLUMNS

COLUMNS = tuple(STEP_COLUMNS)

MAX_WAITING = 20_000
"""Maximum number of rows kept while the writer is late: more than three minutes at 100 steps per second."""
MEDIAN_EVERY = 25


@dataclass(slots=True)
class StepRow:
    """The figures of one step. They change only until the row is passed on.

    `number` is the number of the step, counted from 0. `end_ns` is the end of the step on the monitor's clock
    (`time.perf_counter_ns`), `wall_ns` the time since the end of the previous step. `figures` has the values of step
    columns by name; a missing column is unknown for this step. With `steps` above 1, the row is the mean of that many
    steps, and `number` is the number of the last one."""

    number: int
    end_ns: int
    wall_ns: float
    figures: dict[str, float] = field(default_factory=dict)
    steps: int = 1

    @property
    def working_ns(self) -> float:
        """Wall time of the step in ns, without evaluation."""
        return self.wall_ns - self.figures.get("evaluation", 0.0)

    @property
    def is_profiled(self) -> bool:
        """True if a profiler recorded the step."""
        return bool(self.figures.get("profiled"))


class RowQueue:
    """A queue of rows from the training thread to the writer thread. Adding never blocks; at the limit, the oldest row
    is dropped."""

    def __init__(self, limit: int = MAX_WAITING) -> None:
        self._rows: deque[StepRow] = deque(maxlen=limit)

    def add(self, row: StepRow) -> None:
        """Adds `row` to the queue. The caller must not change the row afterwards."""
        self._rows.append(row)

    def take(self) -> list[StepRow]:
        """Removes all rows from the queue and returns them, oldest first."""
        return [self._rows.popleft() for _ in range(len(self._rows))]


class RowRateLimiter:
    """Passes on every step of a slow loop, and merges steps of a fast loop, so that the file stays small, but totals
    stay exact.

    The first `burst` steps each get a row. Later steps get `per_second` rows per second on average, each with the mean
    of the steps since the previous row. An outlier, which is a step of at least `outlier` times the median, gets a row
    of its own. The rows of outliers are limited in the same way: the first `burst`, then `per_second` per second. The
    median is that of the last 101 steps, and is computed every 25 steps. A profiled step is merged only with profiled
    steps."""

    def __init__(self, burst: int = 1000, per_second: float = 25.0, outlier: float = 2.0) -> None:
        self._burst = float(burst)
        self._credit = self._outlier_credit = self._burst
        self._per_second = per_second
        self._outlier = outlier
        self._recent_ns: deque[float] = deque(maxlen=101)
        self._median_ns = float("inf")
        self._steps = 0
        self._waiting: list[StepRow] = []
        self.merged = 0
        """Number of steps that share a row with other steps."""

    def filter(self, rows: list[StepRow]) -> list[StepRow]:
        """Returns the rows to write for the steps `rows`. Steps at the end that get no row of their own are merged into
        a last row."""
        passed: list[StepRow] = []
        for row in rows:
            is_outlier, may_pass = self._charge(row)
            is_alone = is_outlier and may_pass
            if self._waiting and (is_alone or row.is_profiled != self._waiting[-1].is_profiled):
                passed.append(self._merge_waiting())
            self._waiting.append(row)
            if may_pass:
                passed.append(self._merge_waiting())
        if self._waiting:
            passed.append(self._merge_waiting())
        return passed

    def _charge(self, row: StepRow) -> tuple[bool, bool]:
        """Returns two values for the step `row`: whether it is an outlier, and whether the rate limit allows another
        row."""
        if self._recent_ns and self._steps % MEDIAN_EVERY == 0:
            self._median_ns = median(self._recent_ns)  # computed in each step, it took most of the thread's time
        self._steps += 1
        self._recent_ns.append(row.wall_ns)
        earned = self._per_second * row.wall_ns / 1e9
        self._credit = min(self._burst, self._credit + earned)
        self._outlier_credit = min(self._burst, self._outlier_credit + earned)
        is_outlier = row.wall_ns >= self._outlier * self._median_ns
        if self._credit >= 1:
            self._credit -= 1
            return is_outlier, True
        if is_outlier and self._outlier_credit >= 1:
            self._outlier_credit -= 1
            return True, True
        return is_outlier, False

    def _merge_waiting(self) -> StepRow:
        rows, self._waiting = self._waiting, []
        if len(rows) > 1:
            self.merged += len(rows)
        return merged(rows)


def merged(rows: list[StepRow]) -> StepRow:
    """Returns one row for consecutive steps. It has the number and the end of the last step, and the mean of each
    figure.

    The mean is over the rows that have the figure. For columns in SPARSE_COUNTS it is over all rows, because these
    figures are not read in every step."""
    if len(rows) == 1:
        return rows[0]
    totals: dict[str, float] = {}
    known: dict[str, int] = {}
    for row in rows:
        for name, value in row.figures.items():
            totals[name] = totals.get(name, 0.0) + value
            known[name] = known.get(name, 0) + 1
    figures = {name: total / (len(rows) if name in SPARSE_COUNTS else known[name]) for name, total in totals.items()}
    last = rows[-1]
    return StepRow(last.number, last.end_ns, sum(row.wall_ns for row in rows) / len(rows), figures, len(rows))
