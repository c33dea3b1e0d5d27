"""Whether the graph can be trusted: the recording replayed unmodified, before anything is predicted from it.

Every latency, pause and lag is set to the usual one of its kind. With each at its own recorded value the replay would
be exact whatever the edges are; with the usual ones only the edges can bring the recorded times back.
"""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.idle_gaps import LONGEST_LATENCY_NS
from tb_bottleneck.replay.graph.blocks import Layout
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO, LONGEST_PAUSE_NS
from tb_bottleneck.replay.graph.graph import Graph, Items
from tb_bottleneck.replay.simulator import replay
from tb_bottleneck.trace.table import Bools, Ints

# A prediction cannot be better than the replay it starts from, and predictions are meant to be right within 5 % at the
# median. Unmodified replays of 29 public traces miss by 0.4 % at most.
MAX_REPLAY_ERROR = 0.05
# Frozen time stays as it was whatever is cured. More of it than the smallest gain that a verdict is given for (10 % of
# the window, regimes/judge.py) could hide what the cure would bring.
MAX_FROZEN_SHARE = 0.10


@dataclass(frozen=True)
class Check:
    """How far the replayed window is from the recorded one, and which share of it nothing modelled explains."""

    error: float
    frozen_share: float

    @property
    def trusted(self) -> bool:
        """Whether predictions may be made."""
        return self.error <= MAX_REPLAY_ERROR and self.frozen_share <= MAX_FROZEN_SHARE


def check(graph: Graph, layout: Layout) -> Check:
    """Replays the unmodified recording with usual latencies."""
    begin, end = int(graph.edges[0]), int(graph.edges[-1])
    again = replay(graph, layout, usual(graph.items)).window
    inside = (graph.items.at >= begin) & (graph.items.at < end)
    frozen = int(graph.items.frozen[inside].sum())
    return Check(abs(again / (end - begin) - 1), min(frozen / (end - begin), 1.0))


def usual(items: Items) -> Items:
    """The items with every latency, pause and lag at the median of its kind; what no kind explains stays."""
    has_op = items.stream >= 0
    launched = has_op & (items.latency > LONG_AGO) & (items.latency <= LONGEST_LATENCY_NS)
    waiting, following = (items.waits >= 0) & ~has_op, items.after >= 0
    return replace(
        items,
        latency=_median(items.latency, launched),
        pause=_median(items.pause, has_op & (items.pause <= LONGEST_PAUSE_NS)),
        lag=_median(items.lag, waiting),
        after_lag=_median(items.after_lag, following),
    )


def _median(values: Ints, rows: Bools) -> Ints:
    return np.where(rows, int(np.median(values[rows])), values) if rows.any() else values
