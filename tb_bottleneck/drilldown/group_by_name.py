"""Groups the rows of a table, such as kernels by name, with the number of rows and the total time of each group."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.table import Floats, Ints, Rows


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows with equal values form a group. Arrays have one element per group, except `length` and `member`, which have
    one element per row."""

    value: Ints
    count: Ints  # number of rows of the group
    total: Ints  # sum of the weights of the rows (by default their lengths in ns)
    longest: Rows  # the longest row of the group
    shortest: Rows
    length: Ints  # ns, of each row
    member: Rows  # the group to which each row belongs

    @property
    def order(self) -> Rows:
        """The indices of the groups, in descending order of `total`."""
        return np.argsort(-self.total, kind="stable")

    def summed(self, weights: Ints | Floats) -> Floats:
        """Returns for each group the sum of `weights`, which has one element per row."""
        return np.bincount(self.member, weights=weights, minlength=len(self.value)).astype(np.float64)

    def shares(self, start: Ints, end: Ints, begin: int, stop: int) -> Floats:
        """Returns for each group the fraction (0 to 1) of the time [begin, stop) in which at least one row of the group
        runs. `start` and `end` have the times of each row. All times are in ns."""
        return shares_of(self.member, len(self.value), start, end, begin, stop)

    def left_out(self, shown: int) -> pb.LeftOut:
        """Returns the number and the total time of the groups that a table of the `shown` largest groups lacks."""
        rest = self.total[self.order[shown:]]
        return pb.LeftOut(rows=len(rest), total_ns=float(rest.sum()))


def groups_of(values: Ints, start: Ints, end: Ints, weight: Ints | None = None) -> Groups:
    """Groups rows by `values`. `start` and `end` have the times of each row in ns.

    `weight` has for each row the value that Groups.total sums; by default, it is the length of the row in ns.
    """
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

    `member` has the group of each row, `groups` is the number of groups, and `start` and `end` have the times of each
    row. Rows may overlap and may be partly outside of [begin, stop), so the sum of lengths is not enough."""
    low, high = np.clip(start, begin, stop), np.clip(end, begin, stop)
    order, by_end = np.lexsort((low, member)), np.lexsort((high, member))
    # The largest end so far in the same group. Ends are ranked by group first, so the running maximum needs no reset.
    rank = np.empty(len(member), np.int64)
    rank[by_end] = np.arange(len(member))
    reach = high[by_end[np.maximum.accumulate(rank[order])]]
    before = np.append(begin, reach[:-1])
    before[np.append(True, np.diff(member[order]) != 0)[: len(before)]] = begin
    added = np.maximum(high[order] - np.maximum(low[order], before[: len(order)]), 0)
    return np.bincount(member[order], added, groups) / max(stop - begin, 1)
