"""The type of a scenario: a simulated fix."""

from collections.abc import Callable

from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph


class Scenario(Record, frozen=True):
    """A named fix that can be applied to a graph.

    `apply` returns the modified graph, or None if the recording lacks what the simulation needs. The texts of the
    assumptions are under the same name in knowledge/scenarios.toml. `on_cpu` is True if the scenario also applies to
    CPU runs, whose graph has no device operations.
    """

    name: str
    apply: Callable[[ModifiedGraph, Estimate], ModifiedGraph | None]
    on_cpu: bool = False


# The share of the removed time that stays, for fixes that may not work everywhere.
REMAINING_SHARE = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}
