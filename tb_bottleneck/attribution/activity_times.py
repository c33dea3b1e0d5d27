"""Tables of host time with one column per activity. A row is an idle gap of the device, or an item of a replay graph.

Most activities do not occur in a recording. The columns of these activities are all zero and take no memory. A changed
copy of a table shares the unchanged columns with the original. This saves memory, because a dozen replay graphs of one
recording, each with a table, exist at the same time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.table import Ints


class ActivityTimes(Record, frozen=True, eq=False):
    """Host times in ns. `columns` has one array per activity, in the order of Activity. All have the same length."""

    columns: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: Any) -> "ActivityTimes":
        """Returns the selected rows. `rows` is an index array, a mask or a slice."""
        return times_of([column[rows] for column in self.columns])

    def of(self, activity: Activity) -> Ints:
        """Returns the host time that each row spends in `activity`, in ns."""
        return self.columns[activity]

    def total(self, *activities: Activity) -> Ints:
        """Returns for each row the sum of the times in `activities`, in ns. Without arguments, sums all activities."""
        total = np.zeros(len(self), np.int64)
        for activity in activities or Activity:
            if not _is_zero(self.columns[activity]):
                total += self.columns[activity]
        return total

    def with_column(self, activity: Activity, column: Ints) -> "ActivityTimes":
        """Returns a copy in which `column` (ns) replaces the column of `activity`."""
        return times_of([*self.columns[:activity], column, *self.columns[activity + 1 :]])

    def each(self, change: Callable[[Ints], Ints]) -> "ActivityTimes":
        """Returns a copy with `change` applied to each column. `change` must map 0 to 0."""
        return times_of([column if _is_zero(column) else change(column) for column in self.columns])

    def equals(self, other: "ActivityTimes") -> bool:
        """Returns True if `other` has the same times."""
        pairs = zip(self.columns, other.columns, strict=True)
        return all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in pairs)


def times_of(columns: Sequence[Ints]) -> ActivityTimes:
    """Returns a table of the given columns, one per activity, in the order of Activity."""
    return ActivityTimes(tuple(column if column.any() else no_time(len(column)) for column in columns))


def no_time(count: int) -> Ints:
    """Returns a read-only column of `count` zeros that takes no memory."""
    return np.broadcast_to(np.int64(0), count)


def activity_times(host: HostTimeline, thread: Ints, begin: Ints, end: Ints) -> ActivityTimes:
    """Returns a table with one row per interval [begin[i], end[i]), in ns: its time by activity of thread[i].

    `thread[i]` is a row of the trace's threads, or -1 for no thread. Without a thread, all time of the interval is
    OTHER.
    """
    columns = [no_time(len(begin))] * len(Activity)
    for rows, activities in host.by_thread_group(thread):
        for activity, spans in activities.items():
            if len(spans) and activity is not Activity.OTHER:
                if _is_zero(columns[activity]):
                    columns[activity] = np.zeros(len(begin), np.int64)
                columns[activity][rows] = spans.covered(begin[rows], end[rows])
    known = times_of(columns)
    return known.with_column(Activity.OTHER, end - begin - known.total())


def _is_zero(column: Ints) -> bool:
    return column.strides == (0,)
