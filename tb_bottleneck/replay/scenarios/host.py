"""Scenarios of the host: less Python code, operators, interruptions, first runs and allocations."""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.measures.fast_steps import BESIDE_WRITER
from tb_bottleneck.measures.trace.interruptions import interruptions_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario, with_quicker_operators
from tb_bottleneck.trace.runtime_calls import Role


def without_python(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes Python code from the training thread: it moves into loader workers, onto the device, or out of the loop.

    Changes: host time in no other recorded activity (Activity.OTHER) becomes zero. Negative times, which come from
    overlaps of threads, stay. On a CPU, the operators get a little faster (with_quicker_operators).
    Assumes: none of this code has to run on the training thread.
    Bounds: in the low estimate, half of the time stays, and operators take as long as recorded. The high estimate
    equals the expected one.
    """
    python = graph.items.gap.of(Activity.OTHER)
    remaining = (python.clip(min=0) * REMAINING_SHARE[estimate]).astype("int64")
    fixed = graph.with_gap(Activity.OTHER, remaining + python.clip(max=0))
    return fixed if estimate is Estimate.LOW else with_quicker_operators(graph, fixed)


WITHOUT_PYTHON = Scenario("host_python", without_python, on_cpu=True)


def without_host_operators(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Moves operators that compute on the host onto the device, or out of the training thread.

    Changes: the time of operators that compute on the host becomes zero.
    Assumes: the device does the same work in little time, or another thread does it next to the training.
    Bounds: in the low estimate, half of the time stays. The high estimate equals the expected one.
    """
    return graph.with_items(gap=graph.gap_scaled(Activity.COMPUTE, REMAINING_SHARE[estimate]))


WITHOUT_HOST_OPERATORS = Scenario("host_operators", without_host_operators)


WRITER = "tensorboard/writer.py("
# Factor by which interruptions become rarer. The advice is to go from every few steps to every hundredth or thousandth
# step, and for garbage collection to every thousandth.
RARER = {Estimate.EXPECTED: 100.0, Estimate.LOW: 3.0, Estimate.HIGH: np.inf}
COLLECTED_RARER = 1_000.0


def without_interruptions(kind: str, graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Makes interruptions of the steps rarer: checkpoints, logging, evaluation, garbage collection.

    `kind` is the kind of interruption (measures/trace/interruptions.py), or empty for all kinds.

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


def without_allocations(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Stops requesting memory from the driver: the caching allocator serves every request itself.

    Changes: driver calls that allocate or free memory take no time, and no longer wait for the device.
    Assumes: there is enough device memory to keep freed blocks in the cache.
    Bounds: in the low estimate, half of the time stays, as if sizes changed every step, and the calls still wait. The
    high estimate equals the expected one.
    """
    items, calls = graph.items, graph.base.recording.trace.calls
    role = calls.role[items.call] if len(calls) else items.call
    frees = (items.call >= 0) & (role == Role.ALLOCATE)
    staying = REMAINING_SHARE[estimate]
    return graph.with_items(
        gap=graph.gap_scaled(Activity.ALLOCATE, staying),
        cost=np.where(frees, scale_column(items.cost, staying), items.cost),
        lag=np.where(frees, scale_column(items.lag, staying), items.lag),
        drains=items.drains & ~(frees & (staying == 0.0)),
    )


WITHOUT_ALLOCATIONS = Scenario("allocator", without_allocations)
