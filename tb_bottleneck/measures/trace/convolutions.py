"""Convolution networks in 32 bits: their activations, too, are twice as large as in half precision."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.kernel_efficiency import MOSTLY
from tb_bottleneck.measures.trace.window import window_share
from tb_bottleneck.roofline.device_peaks import has_matrix_units
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools

_WIDE_TYPES = ("fp32", "tf32")


@memoized
def convolution_share(recording: Recording) -> float:
    """Returns the share of the products' time in convolutions whose operands have 32 bits."""
    ops = recording.trace.device_ops
    products = ops.work == Work.CONTRACTION
    wide = name_matches(recording.trace.names, ops.name, _is_wide)
    length = ops.end - ops.start
    whole = int(length[products].sum())
    return float(length[products & wide & _convolves(recording)].sum() / whole) if whole else 0.0


@memoized
def between_products(recording: Recording) -> Bools:
    """Returns a mask of the operations that autocast may run in half precision: no products, and not the optimizer's,
    which updates parameters in their own type."""
    ops = recording.trace.device_ops
    updates = recording.optimizer_time.contains(ops.issued(recording.trace.calls))
    return np.asarray(np.isin(ops.work, (Work.STREAMING, Work.UNKNOWN)) & ~updates, np.bool_)


def wide_activations(recording: Recording) -> Measure | Missing:
    """Share of the window in which operations between convolutions run in 32 bits.

    Missing if most products are no convolutions in 32 bits, or if the device is not known to be faster in fewer.
    """
    if not has_matrix_units(recording.trace) or convolution_share(recording) <= MOSTLY:
        return Missing("most products are not known to be convolutions in 32 bits")
    ops = recording.trace.device_ops.take(between_products(recording))
    return window_share(recording, ops.start, ops.end)


def _is_wide(name: str) -> bool:
    precision = precision_of(name)
    return precision is not None and precision.dtype in _WIDE_TYPES


def _convolves(recording: Recording) -> Bools:
    """Returns a mask of the operations that an operator of a convolution launched."""
    trace, ops = recording.trace, recording.trace.device_ops
    found = np.zeros(len(ops), np.bool_)
    if not len(trace.calls):
        return found
    called, operator = trace.calling_operators
    rows = np.flatnonzero(ops.launched)
    rows = rows[called[ops.call[rows]]]
    names = trace.events.name[operator[ops.call[rows]]]
    found[rows] = name_matches(trace.names, names, lambda name: "convolution" in name)
    return found
