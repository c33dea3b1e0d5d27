"""Makes interruptions of the steps rarer: checkpoints, logging, evaluation, garbage collection.

Changes: host and device time inside interruptions of one kind is divided by RARER, as if they were that much rarer.
Assumes: the recorded frequency is that of the whole run, and the interruption is not needed more often.
Bounds: low: a third as often. High: never, as if they ran in parallel with the training. On a CPU, interruptions also
slow the work between them (cold caches): in the high estimate, each operator takes as long as the quickest recorded one
with its shapes, and Python shrinks as much. TensorBoard's writer has a thread that holds the interpreter's lock while
it encodes: beside it, all that the host does takes longer. Without it, the host's other work is expected to shrink as
the quickest operators show, and in the high estimate to BESIDE_WRITER of its time.
"""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.measures.fast_steps import BESIDE_WRITER
from tb_bottleneck.measures.trace.interruptions import interruptions_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario

WRITER = "tensorboard/writer.py("
# The advice is to go from every few steps to every hundredth or thousandth step.
RARER = {Estimate.EXPECTED: 100.0, Estimate.LOW: 3.0, Estimate.HIGH: np.inf}


def apply(kind: str, graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens interruptions of one kind (measures/trace/interruptions.py), or of every kind if `kind` is empty."""
    items, remaining = graph.items, 1 / RARER[estimate]
    spans = _spans(graph, kind)
    # A gap may contain an interruption and other host work: only the former shrinks.
    interrupting = graph.items.gap.of(Activity.INTERRUPT)
    inside = np.minimum(graph.gap_share_in(spans) * graph.base.gap_length, interrupting) / np.maximum(interrupting, 1)
    issued = graph.issued_in(spans)
    if inside.any() or issued.any():
        graph = _undisturbed(graph, kind, estimate)
    return graph.with_items(
        gap=graph.gap_scaled(Activity.INTERRUPT, 1 - inside * (1 - remaining)),
        cost=np.where(issued, scale_column(items.cost, remaining), items.cost),
        length=np.where(issued, scale_column(items.length, remaining), items.length),
        waits=np.where(issued, NONE, items.waits),
    )


def _undisturbed(graph: ModifiedGraph, kind: str, estimate: Estimate) -> ModifiedGraph:
    """Returns the graph with the host's other work as fast as without the interruptions."""
    on_cpu, share = not graph.base.recording.on_device, 1.0
    if kind == "logging" and estimate is not Estimate.LOW and _has_writer(graph.base.recording):
        share = BESIDE_WRITER if estimate is Estimate.HIGH else graph.base.quickest_share if on_cpu else 1.0
    elif estimate is Estimate.HIGH and on_cpu:
        share = graph.base.quickest_share
    for slowed in (Activity.DISPATCH, Activity.OTHER) if share < 1 else ():
        graph = graph.with_items(gap=graph.gap_scaled(slowed, share))
    return graph


@memoized
def _has_writer(recording: Recording) -> bool:
    """Returns True if a function of TensorBoard's writer was recorded."""
    return any(WRITER in name for name in recording.trace.names)


def _spans(graph: ModifiedGraph, kind: str) -> Spans:
    found = interruptions_of(graph.base.recording)
    return (found.of(kind) if kind else found).spans()


CHECKPOINTS = Scenario("checkpoints", partial(apply, "checkpoint"), on_cpu=True)
LOGGING = Scenario("logging", partial(apply, "logging"), on_cpu=True)
EVALUATION = Scenario("evaluation", partial(apply, "evaluation"), on_cpu=True)
COLLECTION = Scenario("collection", partial(apply, "collection"), on_cpu=True)
OTHERS = Scenario("interruptions", partial(apply, ""), on_cpu=True)
