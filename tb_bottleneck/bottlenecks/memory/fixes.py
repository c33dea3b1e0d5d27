"""Scenarios of fewer bytes: fused attention instead of single operators, and fused pointwise kernels."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.compute.fixes import MIXED_PRECISION
from tb_bottleneck.bottlenecks.launch.fixes import FUSED_OPTIMIZER
from tb_bottleneck.bottlenecks.memory.attention import AttentionWork, attention_work
from tb_bottleneck.bottlenecks.memory.embedding import dense_tables, dense_update_spans, table_part
from tb_bottleneck.bottlenecks.memory.layout import NORM_LEFT, is_conversion, is_norm_in_nchw
from tb_bottleneck.knowledge.catalogue import first_match, fusible_patterns
from tb_bottleneck.knowledge.gpus import GIGA, TERA
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import Scenario, scaled_on_cpu, with_quicker_operators
from tb_bottleneck.roofline.device_peaks import peaks_of
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Ints

RATE_ON_CPU = {Estimate.EXPECTED: 1.0, Estimate.LOW: 0.6, Estimate.HIGH: 1.5}
"""Rate of the fused kernel / rate of the linear layers of the same recording. The expected value is from transformers
like those of ATTENTION.md (torch 2.13, AMD EPYC), where 12 of 12 gains are inside the bounds. The bounds are a
choice."""
LONG_QUERIES = 768
"""From this number of queries on, the kernel works on blocks of 256 queries, otherwise of 64 (pytorch,
FlashAttentionKernel.cpp)."""
RATE_OF_SHORT_QUERIES = {Estimate.EXPECTED: 0.45, Estimate.LOW: 0.3, Estimate.HIGH: 0.9}
"""RATE_ON_CPU with fewer queries: about 0.35 and 0.5 follow from the gains of the transformers of ATTENTION.md with 512
tokens. The bounds are a choice."""
RATE_ON_DEVICE = {Estimate.EXPECTED: 0.65, Estimate.LOW: 0.35, Estimate.HIGH: 0.95}
"""Rate of the fused kernel / rate of the linear layers, for operands of 16 bits. Twelve transformers on an H200 (torch
2.11, GPU.md) have 0.32 to 0.97, 0.63 in the median. FlashAttention-2 reaches 50 to 73 % of an A100's peak
forwards and 44 to 63 % backwards (arXiv 2307.08691, section 4.1), large products about 80 %."""
RATE_IN_SINGLE_PRECISION = {Estimate.EXPECTED: 0.55, Estimate.LOW: 0.45, Estimate.HIGH: 1.3}
"""Rate of the fused kernel / peak of 32-bit vector units, for operands of 32 bits: such a kernel multiplies each number
in three parts on matrix units, whether or not TF32 is allowed (CUTLASS, OpMultiplyAddFastF32). Six transformers on an
H200 have 0.49 to 0.67. High: half of a third of the TF32 peak, as on an A100, is a choice."""
DISPATCH_LEFT = 0.25
"""One call remains of at least four: a multiplication, a scaling, a softmax and a multiplication."""


def with_fused_attention(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Computes attention with one fused kernel, which does not write the attention scores to memory.

    Returns None if the recorded shapes do not give the rate of the linear layers, or if the operands have 32 bits and
    the peak of the device is not known.

    Changes: the operators of attention, forward and backward, take as long as their matrix multiplications alone, at
    most as long as recorded. The multiplications run at RATE_ON_DEVICE or RATE_ON_CPU times the rate of the linear
    layers in this recording. For operands of 32 bits on a device, they run at RATE_IN_SINGLE_PRECISION times the peak
    of its vector units, at most at the rate of the linear layers. On a device, DISPATCH_LEFT of the host's time for
    these operators remains.
    Assumes: scaled_dot_product_attention has a fused kernel for these shapes, types and masks.
    Bounds: the low and the high estimate use the corresponding values of these rates.
    """
    recording = graph.base.recording
    work = attention_work(recording)
    if work is None:
        return None
    if not recording.on_device:
        rates = RATE_ON_CPU if work.queries >= LONG_QUERIES else RATE_OF_SHORT_QUERIES
        left = _left(work.flops / (rates[estimate] * work.linear_rate), work.spans.total())
        return scaled_on_cpu(graph, work.spans, left)
    ops = recording.trace.device_ops
    rate = _rate_on_device(recording, work, estimate)
    if rate is None:
        return None
    left = _left(work.flops / rate, float((ops.end - ops.start)[work.kernels].sum()))
    factors = np.where(work.kernels, left, 1.0)
    gap = graph.gap_scaled(Activity.DISPATCH, 1 - graph.gap_share_in(work.spans) * (1 - DISPATCH_LEFT))
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)), gap=gap)


def _rate_on_device(recording: Recording, work: AttentionWork, estimate: Estimate) -> float | None:
    """Returns the arithmetic rate of the fused kernel on a device in operations per ns; None if the operands have 32
    bits and the peak of the device is not known."""
    if not work.in_single_precision:
        return RATE_ON_DEVICE[estimate] * work.linear_rate
    peaks = peaks_of(recording.trace)
    if peaks is None or peaks.vector is None:
        return None
    return min(RATE_IN_SINGLE_PRECISION[estimate] * peaks.vector * TERA / GIGA, work.linear_rate)


def _left(fused: float, now: float) -> float:
    """Returns the share of the time `now` that the fused kernel takes, at most 1. Both times are in ns."""
    return min(fused / max(now, 1.0), 1.0)


FUSED_ATTENTION = Scenario("attention", with_fused_attention, on_cpu=True)


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

NORM_LEFT_BY_ESTIMATE = {Estimate.EXPECTED: NORM_LEFT, Estimate.LOW: 0.9, Estimate.HIGH: 0.45}
"""Time of batch norm in NHWC / its time in NCHW. The bounds are a choice around one measured training."""


def in_channels_last(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Keeps the tensors of convolutions in NHWC.

    Returns None if no kernel converts the layout.

    Changes: kernels that convert the layout are removed, with their launches; batch norm in NCHW takes NORM_LEFT of its
    time.
    Assumes: the model has no operator that needs NCHW between its convolutions.
    Bounds: in the low estimate, half of the conversions stay; batch norm takes NORM_LEFT_BY_ESTIMATE of its time.
    """
    ops, names = graph.base.ops, graph.base.recording.trace.names
    converts, norms = (name_matches(names, ops.name, test) for test in (is_conversion, is_norm_in_nchw))
    if not converts.any():
        return None
    left = 0.5 if estimate is Estimate.LOW else 0.0
    factors = np.where(converts, left, np.where(norms, NORM_LEFT_BY_ESTIMATE[estimate], 1.0))[graph.items.op]
    lengths = np.where(graph.items.op >= 0, factors, 1.0)
    launches = np.where((graph.items.op >= 0) & converts[graph.items.op], left, 1.0)
    return graph.with_items(
        length=scale_column(graph.items.length, lengths),
        pause=scale_column(graph.items.pause, launches),
        cost=scale_column(graph.items.cost, launches),
    )


CHANNELS_LAST = Scenario("layout", in_channels_last)

SPARSE_PER_ROW = {Estimate.EXPECTED: 4.0, Estimate.LOW: 10.0, Estimate.HIGH: 2.0}
"""Time of a sparse update / time of the dense one, for each row of the batch: it sorts indices and sums up rows. A
choice; with few rows it hardly counts."""
SPARSE_DISPATCH = {Estimate.EXPECTED: 0.6, Estimate.LOW: 1.0, Estimate.HIGH: 0.3}
"""Host time of the optimizer with sparse gradients / with dense ones, for the part of its work in such tables. A
choice: a sparse update has fewer operators than a dense Adam, and a coalescing one more."""

QUICKER_BESIDE_TABLES = {Estimate.EXPECTED: 0.4, Estimate.LOW: 0.0, Estimate.HIGH: 0.65}
"""As QUICKER_OPERATORS (replay/scenario.py): whole tables leave no other data in the caches of a CPU. Without them, the
rest of the step and the sparse update together took 0.44 to 0.77 of its time in three trainings with tables of 25 MB
(torch 2.13, AMD EPYC). The bounds are a choice."""


def with_sparse_gradients(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Updates only the rows of embedding tables that the batch uses.

    Returns None if there is no table with dense gradients of which a batch uses few rows.

    Changes: of the kernels that update the tables, or set their gradients to zero, the part in the tables takes
    SPARSE_PER_ROW times the used share of the rows; of the host's time for their launches, SPARSE_DISPATCH remains. On
    a CPU, operators change as the kernels do, and the others become faster (QUICKER_BESIDE_TABLES).
    Assumes: the optimizer has a version for sparse gradients, and its results are as good.
    Bounds: the low and the high estimate use the corresponding values.
    """
    recording = graph.base.recording
    tables, part = dense_tables(recording), table_part(recording)
    if not tables or not (part.any() or len(dense_update_spans(recording))):
        return None
    used = sum(table.used * table.width for table in tables) / sum(table.rows * table.width for table in tables)
    if not recording.on_device:
        fixed = scaled_on_cpu(graph, dense_update_spans(recording), min(SPARSE_PER_ROW[estimate] * used, 1.0))
        return with_quicker_operators(graph, fixed, quicker=QUICKER_BESIDE_TABLES[estimate])
    part = graph.of_operations(1 - part[recording.trace.device_ops.device == recording.trace.device_index])
    left = part + (1 - part) * min(SPARSE_PER_ROW[estimate] * used, 1.0)
    launches = part + (1 - part) * SPARSE_DISPATCH[estimate]
    return graph.with_items(
        length=scale_column(graph.items.length, left),
        cost=scale_column(graph.items.cost, launches),
        gap=graph.gap_scaled(Activity.DISPATCH, launches),
    )


SPARSE = Scenario("sparse_gradients", with_sparse_gradients, on_cpu=True)

FIXES = {
    "dense_gradients": SPARSE,
    "memory_format": CHANNELS_LAST,
    "optimizer_passes": FUSED_OPTIMIZER,
    "unfused_attention": FUSED_ATTENTION,
    "unfused_pointwise": FUSION,
    "pointwise_outside_graphs": FUSION,
    "fp32_activations": MIXED_PRECISION,
}
"""The scenario that simulates the fix of each cause."""
