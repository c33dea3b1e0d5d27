"""The roof of each group of rows, and the share of it that they reach."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.drilldown.group_by_name import Groups
from tb_bottleneck.regime import Regime
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.table import Bools, Floats, Ints


@dataclass(frozen=True)
class GroupRoofs:
    """For each group: the roof that bounds most of its time, and the share of that roof that it reaches."""

    is_known: Bools
    reached: Floats
    regime: list[Regime]


def group_roofs(groups: Groups, time: Ints, reached: Floats, bound_by: Ints) -> GroupRoofs:
    """Returns the roofs of the groups from the device time, the reached share and the bound of each row."""
    bounded = np.where(bound_by != BoundBy.UNKNOWN, time, 0)
    total, compute = groups.summed(bounded), groups.summed(np.where(bound_by == BoundBy.COMPUTE, time, 0))
    regimes = [Regime.COMPUTE if c * 2 >= t else Regime.MEMORY for c, t in zip(compute, total, strict=True)]
    return GroupRoofs(total > 0, groups.summed(bounded * reached) / np.maximum(total, 1), regimes)
