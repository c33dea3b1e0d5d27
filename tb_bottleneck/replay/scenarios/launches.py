"""Scenarios with fewer and larger kernels: CUDA graphs, fusion, batched calls, larger batches."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.knowledge.catalogue import first_match, fusible_patterns
from tb_bottleneck.measures.trace.fusion import repeated_calls
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario
from tb_bottleneck.roofline.kernel_bounds import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Floats, Ints

# The remaining share of the dispatching: one call per graph instead of one per kernel.
GRAPH_DISPATCH_SHARE = 0.05
COMPILED_DISPATCH_SHARE = 0.5
# Between the kernels of one graph launch: 0.26 us at the median on an H200 (demo/recorded). In public recordings, on
# average 0.44 us on an RTX 3060, 0.66 us on an L40, and none on an MI300X.
GRAPH_PAUSE_NS = 500
# On an H200 (torch 2.11), a graph of 401 kernels took 0.62 ms, its kernels 0.57 ms, in place of a step of 6.0 ms.
SHORTEST_GRAPH_PAUSE_NS, LEAST_DISPATCH_SHARE = 100, 0.01
CAPTURED_WORK = (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN, Work.DEVICE_COPY)


def as_graph(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Compiles the step and replays it as a CUDA graph: the host no longer dispatches each operator.

    Changes: dispatching outside the optimizer takes GRAPH_DISPATCH_SHARE of its time; pauses between kernels are at
    most GRAPH_PAUSE_NS.
    Assumes: shapes do not change from step to step, and nothing in the step makes the host wait.
    Bounds: in the low estimate, compilation halves the dispatching, and no graph can be captured. In the high estimate,
    the optimizer is captured too, dispatching takes LEAST_DISPATCH_SHARE of its time, and pauses are at most
    SHORTEST_GRAPH_PAUSE_NS.
    """
    items = graph.items
    kernels = graph.with_work(*CAPTURED_WORK)
    if estimate is Estimate.LOW:
        cost = np.where(kernels, scale_column(items.cost, COMPILED_DISPATCH_SHARE), items.cost)
        return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, COMPILED_DISPATCH_SHARE), cost=cost)
    optimizer, share, pause = graph.base.recording.optimizer_steps, LEAST_DISPATCH_SHARE, SHORTEST_GRAPH_PAUSE_NS
    eager: Floats | float = 0.0
    captured = kernels
    if estimate is Estimate.EXPECTED:
        eager, share, pause = graph.gap_share_in(optimizer), GRAPH_DISPATCH_SHARE, GRAPH_PAUSE_NS
        captured = kernels & ~graph.issued_in(optimizer)
    return graph.with_items(
        gap=graph.gap_scaled(Activity.DISPATCH, eager + (1 - eager) * share),
        cost=np.where(captured, scale_column(items.cost, share), items.cost),
        pause=np.where(captured, np.minimum(items.pause, pause), items.pause),
    )


GRAPH = Scenario("launches", as_graph)


# Share of the time that remains for kernels other than the longest of their chain. In Segment Anything 2 on an A100,
# when the prompt encoder and the mask decoder were compiled (cpuhrsch/segment-anything-2, 9418727 to 0fd1906), such
# kernels took 302 ms before, 100 ms of them in the longest kernels of their chains. Afterwards, 122 ms remained, fused
# or not.
MERGED_REMAINING = 0.1
# With max-autotune, the generated kernels of products also do the work of neighbouring kernels, on data that the
# products read and write anyway. In the same model (69e4515 to 96f2a0c), of 388 ms in kernels limited by memory, 69 ms
# remained besides Triton kernels.
INTO_PRODUCTS = 0.2
NOT_FUSED = "no"


def fused(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Compiles consecutive pointwise operators, reductions, copies, casts and normalisations into one kernel.

    Changes: of each chain of such kernels on one stream, the longest kernel remains; the others keep MERGED_REMAINING
    of their time, and their launches are removed. A chain ends at every other operation of the stream: a contraction, a
    copy to or from the host, a kernel of a library.
    Assumes: consecutive kernels work on the same tensors. The optimizer is not compiled.
    Bounds: in the low estimate, half of the expected saving is assumed. In the high estimate, chains are merged into
    neighbouring contractions, and at most INTO_PRODUCTS of the time of the chains remains.
    """
    items, chain = graph.items, _chains(graph)
    merged = (chain >= 0) & ~_longest(items.length, chain)
    length, launches = np.where(merged, MERGED_REMAINING, 1.0), np.where(merged, 0.0, 1.0)
    if estimate is Estimate.LOW:
        length, launches = (1 + length) / 2, (1 + launches) / 2
    elif estimate is Estimate.HIGH:
        length = np.where(chain >= 0, np.minimum(length, INTO_PRODUCTS), 1.0)
    return graph.with_items(
        length=scale_column(items.length, length),
        pause=scale_column(items.pause, launches),
        cost=scale_column(items.cost, launches),
        gap=graph.gap_scaled(Activity.DISPATCH, launches),
    )


def _chains(graph: ModifiedGraph) -> Ints:
    """Returns per item the number of its chain; -1 for none. A chain is a sequence of fusible kernels that directly
    follow each other on one stream, outside the optimizer."""
    items, ops, trace = graph.items, graph.base.ops, graph.base.recording.trace
    chains = np.full(len(items), -1, np.int64)
    rows = np.flatnonzero(items.op >= 0)
    rows = rows[np.argsort(items.stream[rows], kind="stable")]
    if not len(rows):
        return chains
    op, stream = items.op[rows], items.stream[rows]
    fusible = name_matches(trace.names, ops.name[op], _is_fusible) & (ops.work[op] == Work.STREAMING)
    fusible &= ~graph.issued_in(graph.base.recording.optimizer_steps)[rows]
    same = fusible[1:] & fusible[:-1] & (stream[1:] == stream[:-1])
    chains[rows] = np.where(fusible, np.cumsum(np.append(True, ~same)) - 1, -1)
    return chains


def _is_fusible(name: str) -> bool:
    return first_match(fusible_patterns(), name) not in (None, NOT_FUSED)


def _longest(length: Ints, chain: Ints) -> Bools:
    """Returns a mask of the longest item of each chain; of equally long items, the first.

    `length` (ns) and `chain` (the number of the chain, -1 for none) have one value per item.
    """
    longest = np.zeros(len(chain), np.bool_)
    rows = np.flatnonzero(chain >= 0)
    if not len(rows):
        return longest
    rows = rows[np.lexsort((-length[rows], chain[rows]))]
    longest[rows[np.append(True, np.diff(chain[rows]) != 0)]] = True
    return longest


FUSION = Scenario("fusing", fused)


REMOVED_ACTIVITIES = (Activity.DISPATCH, Activity.OTHER)


def with_batched_calls(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Replaces a loop of equal small calls, one per sample of a batch, by one call for all samples.

    Changes: of each loop (measures/trace/fusion.py), only the host time and the launches of the first call remain. Of
    the other calls, kernels that fill the device take as long as recorded, because their work remains; kernels that are
    too small to fill the device take no time, because the kernels of the first call do their work in parallel.
    Assumes: no call needs the result of another one, and there is memory for all samples at once.
    Bounds: in the low estimate, half of the removed time stays. The high estimate equals the expected one.
    """
    items, others = graph.items, repeated_calls(graph.base.recording).others
    remaining = REMAINING_SHARE[estimate]
    inside = graph.issued_in(others)
    small = underfilled(graph.base.ops, graph.base.recording.trace.multiprocessors)[items.op]
    small &= inside & graph.with_work(*COMPUTE_KERNELS)
    gap, scale = items.gap, 1 - graph.gap_share_in(others) * (1 - remaining)
    for activity in REMOVED_ACTIVITIES:
        time = gap.of(activity)
        gap = gap.with_column(activity, scale_column(time, np.where(time > 0, scale, 1.0)))
    return graph.with_items(
        gap=gap,
        cost=np.where(inside, scale_column(items.cost, remaining), items.cost),
        length=np.where(small, scale_column(items.length, remaining), items.length),
        pause=np.where(small, scale_column(items.pause, remaining), items.pause),
    )


BATCHED_CALLS = Scenario("batched_calls", with_batched_calls)


BATCH_FACTOR = 2
SMALL_KERNEL_GROWTH = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.5, Estimate.HIGH: 1.0}


def with_larger_batch(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Doubles the samples per step: kernels that are too small to fill the device take no longer.

    Changes: kernels that fill the device, copies and data loading take twice as long. Kernels too small to fill the
    device, the optimizer, collectives and the other host time stay the same. The window of the returned graph is the
    time for the recorded number of samples, which need half as many steps.
    Assumes: there is enough memory, and training converges as well with the larger batch.
    Bounds: in the low estimate, small kernels take 1.5 times as long. The high estimate equals the expected one.
    """
    items, ops = graph.items, graph.base.ops
    small = underfilled(ops, graph.base.recording.trace.multiprocessors)[items.op]
    optimizer = graph.issued_in(graph.base.recording.optimizer_steps)
    grows = np.where(
        graph.with_work(*COMPUTE_KERNELS), np.where(small, SMALL_KERNEL_GROWTH[estimate], BATCH_FACTOR), 1.0
    )
    grows = np.where(
        graph.with_work(Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY), BATCH_FACTOR, np.where(optimizer, 1.0, grows)
    )
    gap = graph.gap_scaled(Activity.LOAD_BATCH, BATCH_FACTOR)
    return graph.with_items(length=scale_column(items.length, grows), gap=gap).with_batch(BATCH_FACTOR)


LARGER_BATCH = Scenario("batch", with_larger_batch)
