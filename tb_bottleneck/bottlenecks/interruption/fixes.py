"""Scenarios of interruptions: rarer ones, and no first-time work inside steps."""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.bottlenecks.interruption.facts import interruptions_of
from tb_bottleneck.measures.unaffected_steps import BESIDE_WRITER
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario, with_quicker_operators

WRITER = "tensorboard/writer.py("
# Factor by which interruptions become rarer. The advice is to go from every few steps to every hundredth or thousandth
# step, and for garbage collection to every thousandth.
RARER = {Estimate.EXPECTED: 100.0, Estimate.LOW: 3.0, Estimate.HIGH: np.inf}
COLLECTED_RARER = 1_000.0


def without_interruptions(kind: str, graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Makes interruptions of the steps rarer: checkpoints, logging, evaluation, garbage collection.

    `kind` is the kind of interruption (bottlenecks/interruption/facts.py), or empty for all kinds.

    Changes: host and device time inside these interruptions is divided by RARER, or by COLLECTED_RARER for garbage
    collection. Other host work that the interruptions slow down gets shorter too (_undisturbed).
    Assumes: the recorded frequency is that of the whole run, and the interruption is not needed more often.
    Bounds: in the low estimate, a third of the interruptions stays. In the high estimate, none stays, as if they ran in
    parallel with the training.
    """
    rarer = COLLECTED_RARER if kind == "collection" and estimate is Estimate.EXPECTED else RARER[estimate]
    items, remaining = graph.items, 1 / rarer
    spans = _spans(graph, kind)
    # A gap may contain an interruption and other host work: only the interruption shrinks.
    interrupting = graph.items.gap.of(Activity.INTERRUPT)
    inside = np.minimum(graph.gap_share_in(spans) * graph.base.gap_length, interrupting) / np.maximum(interrupting, 1)
    issued = graph.issued_in(spans)
    without = graph.with_items(
        gap=graph.gap_scaled(Activity.INTERRUPT, 1 - inside * (1 - remaining)),
        cost=np.where(issued, scale_column(items.cost, remaining), items.cost),
        length=np.where(issued, scale_column(items.length, remaining), items.length),
        waits=np.where(issued, NONE, items.waits),
    )
    return _undisturbed(graph, without, kind, estimate) if inside.any() or issued.any() else without


def _undisturbed(before: ModifiedGraph, after: ModifiedGraph, kind: str, estimate: Estimate) -> ModifiedGraph:
    """Returns the graph `after` with the other host work as fast as without the interruptions of `kind` in `before`.

    On a CPU, interruptions slow the work between them (with_quicker_operators). Evaluations call the same operators as
    the training, so the expected and the low estimate do not change the work between evaluations. In the high estimate,
    each operator takes as long as the quickest recorded one with its shapes, and the time of Python shrinks by the same
    factor.

    A thread of TensorBoard's writer holds the interpreter's lock while it encodes. Without logging, the work of a CPU
    run therefore shrinks by this factor already in the expected estimate. In the high estimate, the work shrinks to
    BESIDE_WRITER of its time.
    """
    high, on_cpu = estimate is Estimate.HIGH, not after.base.recording.on_device
    written = kind == "logging" and _has_writer(after.base.recording)
    if estimate is Estimate.LOW or (kind == "evaluation" and not high):
        return after
    quickest = after.base.quickest_share if on_cpu and (high or written) else 1.0
    share = BESIDE_WRITER if high and written else quickest
    if share < 1:
        after = after.with_items(gap=after.gap_scaled(Activity.OTHER, share))
    if not on_cpu:
        return after.with_items(gap=after.gap_scaled(Activity.DISPATCH, share))
    return with_quicker_operators(before, after, share)


@memoized
def _has_writer(recording: Recording) -> bool:
    """Returns True if a function of TensorBoard's writer was recorded."""
    return any(WRITER in name for name in recording.trace.names)


def _spans(graph: ModifiedGraph, kind: str) -> Spans:
    found = interruptions_of(graph.base.recording)
    return (found.of(kind) if kind else found).spans()


CHECKPOINTS = Scenario("checkpoints", partial(without_interruptions, "checkpoint"), on_cpu=True)
LOGGING = Scenario("logging", partial(without_interruptions, "logging"), on_cpu=True)
EVALUATION = Scenario("evaluation", partial(without_interruptions, "evaluation"), on_cpu=True)
COLLECTION = Scenario("collection", partial(without_interruptions, "collection"), on_cpu=True)
OTHERS = Scenario("interruptions", partial(without_interruptions, ""), on_cpu=True)


def without_first_runs(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes first-time work from the steps: nothing is compiled, loaded or tuned inside steps.

    Changes: host time in compilation, module loading and autotuning becomes zero.
    Assumes: this work is done once per run. If shapes change from step to step, it is repeated.
    Bounds: in the low estimate, half of the time stays. The high estimate equals the expected one.
    """
    return graph.with_items(gap=graph.gap_scaled(Activity.INITIALIZE, REMAINING_SHARE[estimate]))


WITHOUT_FIRST_RUNS = Scenario("first_runs", without_first_runs)

FIXES = {
    "checkpointing": CHECKPOINTS,
    "evaluation": EVALUATION,
    "logging": LOGGING,
    "garbage_collection": COLLECTION,
    "first_runs": WITHOUT_FIRST_RUNS,
    "other_interruption": OTHERS,
}
"""The scenario that simulates the fix of each cause."""
