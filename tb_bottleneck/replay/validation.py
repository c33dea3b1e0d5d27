"""Checks whether the replay of a recording can be trusted."""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.idle_gaps import LONGEST_LATENCY_NS
from tb_bottleneck.replay.graph.blocks import Layout
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO, LONGEST_PAUSE_NS
from tb_bottleneck.replay.graph.graph import Graph, Items
from tb_bottleneck.replay.simulator import replay
from tb_bottleneck.trace.table import Bools, Ints

# A prediction cannot be better than the replay it starts from, and the target for predictions is a median error of 5 %.
# Unmodified replays of 29 public traces have errors of at most 0.4 %.
MAX_REPLAY_ERROR = 0.05
# Frozen time does not change with any fix. A larger share of it than the smallest gain that gets a verdict (10 % of the
# window, regimes/judge.py) could hide the effect of a fix.
MAX_FROZEN_SHARE = 0.10


@dataclass(frozen=True)
class Check:
    """`error` is the relative error of the replayed window, `frozen_share` its share that no dependency explains."""

    error: float
    frozen_share: float

    @property
    def trusted(self) -> bool:
        """True if both values are within their limits, so that predictions may be made."""
        return self.error <= MAX_REPLAY_ERROR and self.frozen_share <= MAX_FROZEN_SHARE


def check(graph: Graph, layout: Layout) -> Check:
    """Returns the check of a replay of the unmodified recording with median delays.

    Every latency, pause and lag is set to the median of its kind. With the recorded values, the replay would be exact
    for any dependencies; with medians, only correct dependencies reproduce the recorded times.
    """
    begin, end = int(graph.edges[0]), int(graph.edges[-1])
    replayed = replay(graph, layout, with_median_delays(graph.items)).window
    inside = (graph.items.at >= begin) & (graph.items.at < end)
    frozen = int(graph.items.frozen[inside].sum())
    return Check(abs(replayed / (end - begin) - 1), min(frozen / (end - begin), 1.0))


def with_median_delays(items: Items) -> Items:
    """Returns the items with every latency, pause and lag at the median of its kind; unexplained values stay."""
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
