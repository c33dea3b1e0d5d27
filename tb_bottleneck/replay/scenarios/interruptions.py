"""What interrupts the steps does so less often: checkpoints, logging, evaluation, garbage collection.

Changes: host and device time inside interruptions of the kind that is cured shrinks to one SELDOM-th, as if they came
that much less often.
Assumes: the recorded cadence is that of the run, and nothing needs the interruption more often.
Bounds: at worst they come a third as often; at best never, as if they were done beside the training. On a CPU they slow
the work between them too (a writer's own thread, cold caches): at best each operator takes as long as the quickest one
with its shapes that was recorded.
"""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.measures.trace.interruptions import INTERRUPTION_KINDS, interruptions_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario

# The advice is to go from every few steps to every hundredth or thousandth.
SELDOM = {Estimate.EXPECTED: 100.0, Estimate.LOW: 3.0, Estimate.HIGH: np.inf}


def apply(kind: str, graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shrinks those of one kind (measures/trace/interruptions.py); of every kind where it is empty."""
    items, left = graph.items, 1 / SELDOM[estimate]
    spans = _spans(graph, kind)
    # A gap may hold an interruption, and what the host did besides: only the former shrinks.
    interrupting = graph.items.gap[:, Activity.INTERRUPT]
    inside = np.minimum(graph.gap_share_in(spans) * graph.base.gap_length, interrupting) / np.maximum(interrupting, 1)
    issued = graph.issued_in(spans)
    if estimate is Estimate.HIGH and not graph.base.recording.on_device and (inside.any() or issued.any()):
        graph = graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, graph.base.quickest_share))
    return graph.with_items(
        gap=graph.gap_scaled(Activity.INTERRUPT, 1 - inside * (1 - left)),
        cost=np.where(issued, scale_column(items.cost, left), items.cost),
        length=np.where(issued, scale_column(items.length, left), items.length),
        waits=np.where(issued, NONE, items.waits),
    )


def _spans(graph: ModifiedGraph, kind: str) -> Spans:
    recording = graph.base.recording
    found, events = interruptions_of(recording), recording.trace.events
    rows = found.rows[found.kind == list(INTERRUPTION_KINDS).index(kind)] if kind else found.rows
    return union(events.start[rows], events.end[rows])


CHECKPOINTS = Scenario("checkpoints", partial(apply, "checkpoint"), on_cpu=True)
LOGGING = Scenario("logging", partial(apply, "logging"), on_cpu=True)
EVALUATION = Scenario("evaluation", partial(apply, "evaluation"), on_cpu=True)
COLLECTION = Scenario("collection", partial(apply, "collection"), on_cpu=True)
OTHERS = Scenario("interruptions", partial(apply, ""), on_cpu=True)
