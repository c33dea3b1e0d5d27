"""Splits the busy time of the device by regime.

Each instant has one owner. If operations overlap, kernels that compute precede collectives, and collectives precede
copies over the link, so that only exposed collectives and exposed copies own time. Overlapping kernels, on one stream
or several, are counted once.
"""

import numpy as np

from tb_bottleneck.intervals import EMPTY, Spans, clip, merge, subtract, union
from tb_bottleneck.regime import Regime
from tb_bottleneck.roofline.kernel_bounds import BoundBy, KernelBounds
from tb_bottleneck.roofline.underfilled import underfilled
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.table import Bools

STREAMS = (Work.STREAMING, Work.DEVICE_COPY)


def busy_by_regime(
    ops: DeviceOps, bounds: KernelBounds, multiprocessors: int | None, begin: int, end: int
) -> dict[Regime, Spans]:
    """Returns the busy time of the window as disjoint sets, by regime.

    If the bound of a kernel is known from shapes, it decides the regime; otherwise the type of work in the kernel's
    name does.
    """
    busy, taken = {}, EMPTY
    for regime, rows in ops_by_regime(ops, bounds, multiprocessors).items():
        spans = clip(union(ops.start[rows], ops.end[rows]), begin, end)
        busy[regime] = subtract(spans, taken)
        taken = merge(taken, spans)
    return busy


def ops_by_regime(ops: DeviceOps, bounds: KernelBounds, multiprocessors: int | None) -> dict[Regime, Bools]:
    """Returns masks of the operations by the regime that owns them when they run alone, in order of precedence."""
    is_unknown = bounds.bound_by == BoundBy.UNKNOWN
    small = underfilled(ops, multiprocessors) & np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN))
    return {
        Regime.COMPUTE: ((bounds.bound_by == BoundBy.COMPUTE) | (is_unknown & (ops.work == Work.CONTRACTION))) & ~small,
        Regime.MEMORY: ((bounds.bound_by == BoundBy.MEMORY) | (is_unknown & np.isin(ops.work, STREAMS))) & ~small,
        Regime.UNDERFILLED: small,
        Regime.UNEXPLAINED: is_unknown & (ops.work == Work.UNKNOWN) & ~small,
        Regime.COMMUNICATION: np.isin(ops.work, (Work.COLLECTIVE, Work.PEER_COPY)),
        Regime.TRANSFER: np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)),
    }
