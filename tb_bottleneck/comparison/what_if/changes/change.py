"""The type of a change: its effect on device work, host, and samples per step."""

from collections.abc import Callable
from dataclasses import dataclass

from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.table import Floats, Ints

Factors = Callable[[Estimate], Floats]


@dataclass(frozen=True)
class Change:
    """A change of a run.

    `factors` returns for each operation of the trace's device its time after / its time now; `modify` changes the rest
    of the graph. `samples` is the factor of samples per step; `bounds` are the limits of the operations after the
    change. `clause` completes a sentence: "the loader had 8 workers". `fix` is the scenario of the causes that
    the change itself fixes.
    """

    clause: str
    assumptions: tuple[str, ...]
    factors: Factors | None = None
    modify: Callable[[ModifiedGraph, Estimate], ModifiedGraph] | None = None
    samples: float = 1.0
    bounds: Ints | None = None
    fix: Scenario | None = None


class CannotPredict(Exception):
    """The recording does not allow the prediction of this change; the message says why."""
