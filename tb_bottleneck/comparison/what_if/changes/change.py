"""What a change of a run is: what becomes of its device work, of its host, and of the samples of a step."""

from collections.abc import Callable
from dataclasses import dataclass

from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.trace.table import Floats, Ints

Factors = Callable[[Estimate], Floats]


@dataclass(frozen=True)
class Change:
    """`factors` gives for each operation of the trace's device its time after / its time now; `world` changes the rest.

    `samples` is how many times as many samples a step works on; `roofs` are those that bound the operations then.
    `slower` is how much longer a step may take, as a share, for what no replay of one process shows. `says` is a
    clause, "the loader had 8 workers".
    """

    says: str
    assumptions: tuple[str, ...]
    factors: Factors | None = None
    modify: Callable[[ModifiedGraph, Estimate], ModifiedGraph] | None = None
    samples: float = 1.0
    slower: float = 0.0
    roofs: Ints | None = None


class CannotPredict(Exception):
    """Asked for a change that this recording does not allow to predict; str() says why."""
