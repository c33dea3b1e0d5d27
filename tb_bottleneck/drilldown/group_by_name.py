"""Groups rows by name, with the number of rows, the total time and the longest row of each group."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.table import Floats, Ints, Rows


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows grouped by equal values. Arrays have one entry per group, except `length` and `member`, which have one per
    row."""

    value: Ints
    count: Ints
    total: Ints  # sum of the weights
    longest: Rows  # among the grouped rows
    shortest: Rows
    length: Ints  # of each row
    member: Rows  # the group of each row

    @property
    def order(self) -> Rows:
        """The indices of the groups, in descending order of `total`."""
        return np.argsort(-self.total, kind="stable")

    def summed(self, weights: Ints | Floats) -> Floats:
        """Returns the sum of `weights`, one per row, for each group."""
        return np.bincount(self.member, weights=weights, minlength=len(self.value)).astype(np.float64)

    def shares(self, start: Ints, end: Ints, begin: int, stop: int) -> Floats:
        """Returns for each group the fraction (0 to 1) of the time [begin, stop) in which at least one of its rows
        runs. `start` and `end` are the times of the rows. All times are in ns."""
        return shares_of(self.member, len(self.value), start, end, begin, stop)

    def left_out(self, shown: int) -> pb.LeftOut:
        """Returns the number and the total time of the groups after the `shown` largest ones. A table leaves these
        groups out."""
        rest = self.total[self.order[shown:]]
        return pb.LeftOut(rows=len(rest), total_ns=float(rest.sum()))


def groups_of(values: Ints, start: Ints, end: Ints, weight: Ints | None = None) -> Groups:
    """Groups rows by `values`. `start` and `end` are their times in ns. `total` is the sum of `weight`, which is by
    default the length of the row in ns."""
    length = end - start
    summed = length if weight is None else weight
    value, member, count = np.unique(values, return_inverse=True, return_counts=True)
    member = member.reshape(-1)
    total = np.bincount(member, weights=summed, minlength=len(value)).astype(np.int64)
    order = np.lexsort((length, member))
    last = np.cumsum(count)
    longest, shortest = (order[last - 1], order[last - count]) if len(value) else (order, order)
    return Groups(value, count, total, longest, shortest, length, member)


def shares_of(member: Rows, groups: int, start: Ints, end: Ints, begin: int, stop: int) -> Floats:
    """Returns for each group the fraction (0 to 1) of the time [begin, stop), in ns, in which at least one of its rows
    runs.

    `member` has the group of each row. Rows may overlap and may reach out of [begin, stop), so the fraction cannot be
    computed from the sum of their lengths."""
    low, high = np.clip(start, begin, stop), np.clip(end, begin, stop)
    order, by_end = np.lexsort((low, member)), np.lexsort((high, member))
    # The largest end so far, of the same group: ranks of ends increase from group to group, so it needs no reset.
    rank = np.empty(len(member), np.int64)
    rank[by_end] = np.arange(len(member))
    reach = high[by_end[np.maximum.accumulate(rank[order])]]
    before = np.append(begin, reach[:-1])
    before[np.append(True, np.diff(member[order]) != 0)[: len(before)]] = begin
    added = np.maximum(high[order] - np.maximum(low[order], before[: len(order)]), 0)
    return np.bincount(member[order], added, groups) / max(stop - begin, 1)
