"""The contractions of a window: matrix multiplications, convolutions and attention, with their operations and the part
of the step to which each contraction belongs. Operations are floating-point operations.

Each operator that launches kernels counts once. On a CPU run, the innermost operator counts: addmm, but not the linear
that calls it. An operator that runs in the backward pass with its own sequence number is a forward operator that runs
again: with checkpointing, torch enables gradients for such operators (torch/utils/checkpoint.py), and the profiler
records sequence numbers only for operators with gradients.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.knowledge.catalogue import DTYPES, Precision, first_match, operator_patterns, precision_of
from tb_bottleneck.measures.trace.window_rows import in_host_steps
from tb_bottleneck.roofline.attention import attention_of
from tb_bottleneck.roofline.device_peaks import DensePeaks, dense_peaks_of
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.roofline.operator_args import dtype_of_operand, first_tensor_type, with_operand_type
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.forward_links import is_autograd_node
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost, nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Floats, Ints, Rows, Table, by_thread, column


class Part(IntEnum):
    """The part of a step to which a contraction belongs."""

    FORWARD = 0
    RECOMPUTED = 1  # forward operators that the backward pass runs again
    GRADIENT = 2
    OPTIMIZER = 3


@dataclass(frozen=True, eq=False)
class Contractions(Table):
    """One row per call of an operator that contracts or launches kernels that may contract."""

    part: Ints = column("Part", "the part of the step")
    time: Ints = column("ns", "time of its kernels; on a CPU run, of the operator")
    flops: Floats = column("count", "operations that ran; 0 if not known")
    needed: Floats = column("count", "operations without those that the backward pass of attention repeats")
    dtype: Ints = column("row of DTYPES", "the type of the product; -1 if not known")
    peak: Floats = column("FLOP/s", "dense peak of the type; 0 if not known")


@memoized
def contractions(recording: Recording) -> Contractions:
    """Returns the contractions of the window, one row per call of an operator."""
    rows, time, kernel = _on_device(recording) if recording.on_device else _on_cpu(recording)
    events, peaks = recording.trace.events, dense_peaks_of(recording.trace)
    if not len(rows):
        return Contractions(time, time, np.zeros(0), np.zeros(0), time, np.zeros(0))
    first, which = distinct_rows(events.name[rows], events.signature[rows], kernel)
    keys = zip(
        events.name[rows][first].tolist(), events.signature[rows][first].tolist(), kernel[first].tolist(), strict=True
    )
    known = np.array([_work(recording, peaks, *key) for key in keys])[which]
    has_work = (known[:, 0] > 0) | (time > 0)
    return Contractions(
        part=_parts(recording, rows),
        time=time,
        flops=known[:, 0],
        needed=known[:, 1],
        dtype=known[:, 2].astype(np.int64),
        peak=known[:, 3],
    ).take(has_work)


@memoized
def unattributed_ns(recording: Recording) -> int:
    """Returns the total time (ns) of those kernels in the window that may be contractions and that no recorded operator
    launched."""
    ops, steps = recording.trace.device_ops, recording.steps
    if not len(ops):
        return 0
    maybe = np.isin(ops.work, (Work.CONTRACTION, Work.UNKNOWN)) & (ops.start >= steps.begin) & (ops.start < steps.end)
    if len(recording.trace.calls):
        maybe &= ~(ops.launched & recording.trace.calling_operators[0][ops.call])
    return int((ops.end - ops.start)[maybe].sum())


def _on_device(recording: Recording) -> tuple[Rows, Ints, Ints]:
    """Returns three arrays with one element per operator that launches kernels in the window: the operator's event row;
    the total time (ns) of its kernels that may be contractions; and the name of the longest of these kernels, as the
    index of the name + 1. For an operator without such kernels, the name is that of its longest kernel."""
    trace, ops, steps = recording.trace, recording.trace.device_ops, recording.steps
    none = np.zeros(0, np.int64)
    if not len(trace.calls):
        return none, none, none
    has_operator, operator = trace.calling_operators
    chosen = np.isin(ops.work, COMPUTE_KERNELS) & (ops.start >= steps.begin) & (ops.start < steps.end)
    chosen &= ops.launched
    chosen[chosen] &= has_operator[ops.call[chosen]]
    ops = ops.take(chosen)
    rows, group = np.unique(operator[ops.call], return_inverse=True)
    length = ops.end - ops.start
    maybe = np.isin(ops.work, (Work.CONTRACTION, Work.UNKNOWN))
    time = np.bincount(group, length * maybe, len(rows)).astype(np.int64)
    kernel = np.zeros(len(rows), np.int64)
    order = np.lexsort((length, maybe))  # the longest contraction last
    kernel[group[order]] = ops.name[order] + 1
    return rows, time, kernel


def _on_cpu(recording: Recording) -> tuple[Rows, Ints, Ints]:
    """Returns three arrays with one element per operator that contracts and does not contain another such operator: its
    event row, its duration in ns, and 0 in place of a kernel."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    contracts = name_matches(
        trace.names, events.name[rows], lambda name: first_match(operator_patterns(), name) == "contraction"
    )
    rows = rows[contracts]
    outer = np.zeros(len(rows), np.bool_)
    for own in by_thread(np.arange(len(rows)), events.thread[rows]).values():
        parent = nest(events.start[rows[own]], events.end[rows[own]]).parent
        outer[own[parent[parent != np.arange(len(own))]]] = True
    rows = rows[~outer]
    return rows, events.end[rows] - events.start[rows], np.zeros(len(rows), np.int64)


def _parts(recording: Recording, rows: Rows) -> Ints:
    """Returns for each of `rows` (event rows of operators) the part of the step to which the operator belongs."""
    events = recording.trace.events
    nodes = np.flatnonzero(is_autograd_node(recording.trace))
    backward = np.zeros(len(rows), np.bool_)
    nodes_of = by_thread(nodes, events.thread)
    for thread, own in by_thread(np.arange(len(rows)), events.thread[rows]).items():
        around = nodes_of.get(thread)
        if around is not None:
            backward[own] = innermost(events.start[around], events.end[around], events.start[rows[own]])[0]
    again = events.sequence[rows] > 0  # operators of optimizers have no number, because they run without gradients
    optimizer = recording.optimizer_steps.contains(events.start[rows]) & ~again
    part = np.where(optimizer, Part.OPTIMIZER, Part.FORWARD)
    return np.where(backward, np.where(again, Part.RECOMPUTED, Part.GRADIENT), part).astype(np.int64)


def _work(
    recording: Recording, peaks: DensePeaks | None, name: int, signature: int, kernel: int
) -> tuple[float, float, float, float]:
    """Returns (flops, needed, dtype, peak) of one call of an operator, as in the columns of Contractions. `name`,
    `signature` and `kernel` are the indices of the operator's name, of its signature, and of its kernel's name + 1 (0
    for none)."""
    trace = recording.trace
    operands = operands_of(trace.signatures[signature]) if signature else None
    count = flops(trace.names[name], operands.dims, operands.concrete) if operands is not None else None
    if operands is None or not count:
        return 0.0, 0.0, -1.0, 0.0
    attention = attention_of(trace.names[name], operands.dims, operands.concrete)
    needed = count if attention is None else attention.flops_without_repetition
    precision = _precision(trace.names[kernel - 1] if kernel else "", first_tensor_type(operands))
    precision = precision if peaks is None else peaks.fastest_type(precision)
    peak = peaks.of(precision) if peaks is not None else None
    dtype = DTYPES.index(precision.dtype) if precision.dtype is not None else -1
    return float(count), float(needed), float(dtype), peak or 0.0


def _precision(kernel: str, operand: str) -> Precision:
    """Returns the type of a contraction: the type in the kernel's name `kernel`, otherwise the type `operand` of its
    operands."""
    precision = with_operand_type(precision_of(kernel) if kernel else None, operand)
    if precision is not None and precision.dtype is not None:
        return precision
    unit = "unknown" if kernel else "vector"
    return Precision(unit, dtype_of_operand(operand))
