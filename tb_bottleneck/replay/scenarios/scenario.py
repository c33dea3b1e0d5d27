"""What a scenario is: a value that pairs a name with the function that cures a world."""

from collections.abc import Callable
from dataclasses import dataclass

from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph


@dataclass(frozen=True)
class Scenario:
    """`cure` gives the cured world, or None where the recording does not hold what it takes to simulate the cure.

    The words that name its assumption are under its name in knowledge/scenarios.toml. `on_cpu` says whether it holds of
    a run on the CPU too, whose graph has no device operations.
    """

    name: str
    apply: Callable[[ModifiedGraph, Estimate], ModifiedGraph | None]
    on_cpu: bool = False
