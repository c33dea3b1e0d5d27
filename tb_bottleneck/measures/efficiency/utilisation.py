"""How well a trace uses its device: MFU and HFU (utilisation by the operations of the model, and by all that ran),
and tensor cores."""

from collections.abc import Iterable

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.units import NS_PER_S, share_text
from tb_bottleneck.knowledge.catalogue import DTYPES, precision_of
from tb_bottleneck.measures.efficiency.contractions import Contractions, Part, contractions, unattributed_ns
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.measures.trace.window_rows import device_work
from tb_bottleneck.roofline.device_peaks import DensePeaks, dense_peaks_of, has_matrix_units
from tb_bottleneck.roofline.operator_args import IMPLAUSIBLE_FROM
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.forward_links import is_autograd_node
from tb_bottleneck.trace.kernel_names import passing_names
from tb_bottleneck.trace.table import Bools, Ints

# Contractions without recorded shapes may take this share of the time of all contractions. The times of equal steps
# differ by as much.
MAX_UNKNOWN_SHARE = 0.05
MIN_SIGNATURES = 2  # the first signature is a placeholder for "none"
# The operations of the window may not need more time at the device's peaks than this share of the window.
MAX_UTILISATION = 1.0


class TypeShare(Record, frozen=True):
    """One number type of contractions (matrix multiplications, convolutions and attention): its share of the model's
    operations (0 to 1), and the device's dense peak for this type in FLOP/s."""

    dtype: str
    share: float
    peak: float


class Utilisation(Record, frozen=True):
    """Figures by field name, and the number types of the model's contractions, the largest share first."""

    figures: Figures
    types: tuple[TypeShare, ...] = ()


class _Needed(Record, frozen=True):
    """The operations of the window. `model` is the number of floating-point operations that the model needs.

    `model_ns` is the time in ns that these operations take at the device's peak. `hardware_ns` is the time that all
    operations that ran take at the peak; None if this time is not known. `basis` is the key of the sentence that says
    what is known about gradients.
    """

    model: float
    model_ns: float
    hardware_ns: float | None
    basis: str


_FIELDS = ("mfu", "hfu", "model_flops_per_step", "peak_flops")


@memoized
def utilisation(recording: Recording) -> Utilisation:
    """Returns MFU, HFU, the model's operations per step and the peak, or the reason why they are not known.

    MFU and HFU are: time that contractions of the window need at the device's peak / time of the window (0 to 1).

        MFU   forward contractions + their gradients: 3 x forward; 2 x forward for layers of which the weights or the
              input need no gradient
        HFU   all contractions that ran: also those that run again for checkpointing, in the backward pass of attention,
              and in an optimizer

        time at the peak = sum over the operators of operations / dense peak of the operator's type

    With one number type, the ratio is operations / (time x peak), as in PaLM (arXiv 2204.02311, appendix B) and in
    arXiv 2205.05198. With several types, as in FP8 training, operations of different types cannot be added, but their
    times at the peak can. For causal attention, half of the scores are counted, because its kernels compute only half;
    PaLM counts all scores. Pointwise work and embeddings are not counted.
    """
    table, peaks = contractions(recording), dense_peaks_of(recording.trace)
    missing = _missing(recording, table, peaks)
    if missing is not None or peaks is None:
        reason = missing or unknown("no_peak")
        return Utilisation(dict.fromkeys(_FIELDS, reason))
    needed = _needed(recording, table)
    window = float(recording.steps.end - recording.steps.begin)
    if not needed.model_ns > 0:
        return Utilisation(dict.fromkeys(_FIELDS, unknown("no_products")))
    if needed.model_ns > MAX_UTILISATION * window or not _fits_kernels(recording, table):
        return Utilisation(dict.fromkeys(_FIELDS, unknown("impossible")))
    source = f"uncertain_{peaks.basis}" if peaks.uncertain else peaks.basis
    device = {"device": peaks.device}
    figures = {
        "mfu": known(needed.model_ns / window, needed.basis),
        "hfu": _hardware(needed, window),
        "model_flops_per_step": known(needed.model / len(recording.steps), needed.basis),
        "peak_flops": known(needed.model / needed.model_ns * NS_PER_S, source.replace(" ", "_"), **device),
    }
    return Utilisation(figures, tuple(_types(table)))


def _missing(recording: Recording, table: Contractions, peaks: DensePeaks | None) -> Figure | None:
    """Returns a figure with the reason why MFU is not known, or None if MFU is known. `table` has the contractions of
    the window, `peaks` the peaks of the device."""
    forward = table.part == Part.FORWARD
    if len(recording.trace.signatures) < MIN_SIGNATURES:
        return unknown("no_shapes")
    if not table.time[forward].sum() and not unattributed_ns(recording):
        return unknown("no_products")
    if peaks is None:
        return unknown("no_peak" if recording.on_device else "no_cpu_peak")
    is_known = table.flops > 0
    lost = _unknown_share(recording, table, forward, is_known)
    if lost > MAX_UNKNOWN_SHARE:
        return unknown("unknown_work", share=share_text(lost))
    without_peak = is_known & (table.peak == 0)
    if table.flops[without_peak].sum() > MAX_UNKNOWN_SHARE * table.flops.sum():
        names = sorted(
            {DTYPES[dtype] if dtype >= 0 else "another type" for dtype in table.dtype[without_peak].tolist()}
        )
        return unknown("no_peak_of_type", types=", ".join(names), device=peaks.device)
    return None


def _unknown_share(recording: Recording, table: Contractions, rows: Bools, is_known: Bools) -> float:
    """Returns the share (0 to 1) of the contractions' time in contractions of which the operations are not known.
    `rows` selects the contractions to consider, `is_known` those with known operations."""
    lost = int(table.time[rows & ~is_known].sum()) + unattributed_ns(recording)
    return lost / max(lost + int(table.time[rows & is_known].sum()), 1)


def _needed(recording: Recording, table: Contractions) -> _Needed:
    """Returns the operations that the model and all contractions of `table` need.

    The operations of gradients count as recorded, but at most as 2 x forward. If their number is not known, they count
    as 2 x forward if there is a backward pass, otherwise as 0.
    """
    forward, gradient = table.part == Part.FORWARD, table.part == Part.GRADIENT
    with np.errstate(divide="ignore", invalid="ignore"):
        at_peak = np.where(table.peak > 0, NS_PER_S / table.peak, 0.0)
    counts = [table.needed[forward].sum(), (table.needed * at_peak)[forward].sum()]
    backward = [table.needed[gradient].sum(), (table.needed * at_peak)[gradient].sum()]
    is_known = table.flops > 0
    trained = _has_backward(recording)
    others = ~forward if trained else np.ones(len(table), np.bool_)
    complete = _unknown_share(recording, table, others, is_known) <= MAX_UNKNOWN_SHARE
    limits = [2.0 * count for count in counts]
    part = min(1.0, limits[0] / backward[0]) if backward[0] else 1.0
    gradients = [part * count for count in backward] if complete else limits if trained else [0.0, 0.0]
    model, model_ns = (float(one + other) for one, other in zip(counts, gradients, strict=True))
    # What ran is at least what the model needs, apart from rounding.
    hardware_ns = max(float((table.flops * at_peak).sum()), model_ns)
    basis = "forward_only" if not trained else "gradients_seen" if complete else "gradients_assumed"
    return _Needed(model, model_ns, hardware_ns if complete else None, basis)


def _hardware(needed: _Needed, window: float) -> Figure:
    """Returns HFU. `window` is the time of the window in ns."""
    if needed.hardware_ns is None:
        return unknown("backward_unknown")
    return known(needed.hardware_ns / window, "all_seen") if needed.hardware_ns <= window else unknown("impossible")


def _has_backward(recording: Recording) -> bool:
    """Returns True if a backward pass begins in the host's steps."""
    nodes = np.flatnonzero(is_autograd_node(recording.trace))
    start, host = recording.trace.events.start[nodes], recording.steps.host
    return bool(((start >= host[0]) & (start < host[-1])).any())


def _fits_kernels(recording: Recording, table: Contractions) -> bool:
    """Returns False if the operations cannot have run in the recorded time of their kernels; always True on a CPU run.

    The times do not fit if a recording assigns kernels to the wrong operators.
    """
    is_known = (table.flops > 0) & (table.peak > 0)
    at_peak = (table.flops[is_known] / table.peak[is_known]).sum() * NS_PER_S
    taken = table.time[is_known].sum()
    return bool(at_peak < IMPLAUSIBLE_FROM * taken) or not recording.on_device


def _types(table: Contractions) -> Iterable[TypeShare]:
    """Returns the number types of the model's contractions, the largest share first."""
    counted = (table.part != Part.RECOMPUTED) & (table.part != Part.OPTIMIZER) & (table.peak > 0)
    total = table.needed[counted].sum()
    found = []
    for dtype in np.unique(table.dtype[counted], return_counts=True)[0].tolist():
        rows = counted & (table.dtype == dtype)
        operations = table.needed[rows].sum()
        rate = operations / (table.needed[rows] / table.peak[rows]).sum()
        found.append(TypeShare(DTYPES[dtype], float(operations / total), float(rate)))
    return sorted(found, key=lambda one: -one.share)


def tensor_share(recording: Recording) -> Figure:
    """Returns the time of the kernels that use tensor cores / the time of all compute kernels in the window, as a
    figure."""
    if not recording.on_device:
        return unknown("on_cpu")
    ops = device_work(recording, *COMPUTE_KERNELS)
    length = ops.end - ops.start
    if not length.sum():
        return unknown("no_kernels")
    if not has_matrix_units(recording.trace):
        return unknown("no_tensor_cores")
    names = recording.trace.names
    tensor = passing_names(names, ops.name, lambda name: _unit(name) == "tensor")[ops.name]
    vector = passing_names(names, ops.name, lambda name: _unit(name) == "vector")[ops.name]
    contracts = np.isin(ops.work, (Work.CONTRACTION, Work.UNKNOWN))
    lost = _share(length, contracts & ~tensor & ~vector)
    if lost > MAX_UNKNOWN_SHARE:
        return unknown("unit_unknown", share=share_text(lost))
    return known(_share(length, tensor), "kernel_names")


def _share(length: Ints, rows: Bools) -> float:
    """Returns the sum of the elements of `length` that `rows` selects / the sum of all elements."""
    return float(length[rows].sum() / length.sum())


def _unit(name: str) -> str:
    precision = precision_of(name)
    return precision.unit if precision is not None else ""
