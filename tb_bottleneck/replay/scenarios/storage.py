"""Makes storage respond evenly: no fetch takes longer than the median one.

Changes: each fetch that takes longer than the median takes the median time. If fetches are even and mostly read,
worker processes read instead (loader.py).
Assumes: storage made them slow, not samples of a different size.
Bounds: low: half of the time beyond the median stays. High: no fetch waits, as if enough batches were queued.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.measures.trace.loader import uneven_fetches
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios import loader
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Evens out the fetches. Returns None if they are even and workers cannot be simulated."""
    uneven = uneven_fetches(graph.base.recording)
    if not isinstance(uneven, Measure) or uneven.value <= 0:
        return loader.apply(graph, estimate)
    return (
        loader.without_waiting(graph, estimate)
        if estimate is Estimate.HIGH
        else evened(graph, REMAINING_SHARE[estimate])
    )


def evened(graph: ModifiedGraph, staying: float) -> ModifiedGraph:
    """Returns the graph in which only the share `staying` remains of each fetch's time beyond the median."""
    loading = graph.items.gap.of(Activity.LOAD_BATCH)
    slow = np.minimum(graph.gap_share_in(_beyond_usual(graph)) * graph.base.gap_length, loading)
    return graph.with_items(
        gap=graph.gap_scaled(Activity.LOAD_BATCH, 1 - slow / np.maximum(loading, 1) * (1 - staying))
    ).with_pace(0.0)


def _beyond_usual(graph: ModifiedGraph) -> Spans:
    """Returns the ends of long fetches, from the time at which a median one would have ended."""
    fetches = graph.base.spans_named("enumerate(Data")
    usual = int(np.median(fetches.ends - fetches.starts)) if len(fetches) else 0
    return union(fetches.starts + usual, fetches.ends)


SCENARIO = Scenario("storage", apply, on_cpu=True)
