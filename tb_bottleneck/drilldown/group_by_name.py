"""Rows of one name taken together: how many, how long, and the longest of them."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.table import Floats, Ints, Rows


@dataclass(frozen=True, eq=False)
class Groups:
    """One entry per value. `total` is the sum of the weights; `longest` a row of what was grouped."""

    value: Ints
    count: Ints
    total: Ints
    longest: Rows
    length: Ints  # of each row
    member: Rows  # for each row its group

    @property
    def order(self) -> Rows:
        """The groups, the greatest total first."""
        return np.argsort(-self.total, kind="stable")

    def summed(self, weights: Ints | Floats) -> Floats:
        """The sum of the weights of each group's rows."""
        return np.bincount(self.member, weights=weights, minlength=len(self.value)).astype(np.float64)

    def left_out(self, shown: int) -> pb.LeftOut:
        """What a table that shows the first `shown` groups does not list."""
        rest = self.total[self.order[shown:]]
        return pb.LeftOut(rows=len(rest), total_ns=float(rest.sum()))


def groups_of(values: Ints, start: Ints, end: Ints, weight: Ints | None = None) -> Groups:
    """Groups rows by value; `weight` is their length where it is left out."""
    length = end - start
    summed = length if weight is None else weight
    value, member, count = np.unique(values, return_inverse=True, return_counts=True)
    member = member.reshape(-1)
    total = np.bincount(member, weights=summed, minlength=len(value)).astype(np.int64)
    order = np.lexsort((length, member))
    longest = order[np.cumsum(count) - 1] if len(value) else order
    return Groups(value, count, total, longest, length, member)
