"""Who owns the time in which the device works.

At every instant the device's time has one owner. A kernel that computes stands before a collective, and that before a
copy over the link: so only exposed collectives and exposed copies own time. Kernels that overlap, on one stream or
several, are counted once.
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
    """The busy time of the window as exclusive sets, by regime.

    A kernel whose roof is known from shapes belongs to it; any other goes by the kind of work that its name tells.
    """
    owned, taken = {}, EMPTY
    for owner, rows in ops_by_regime(ops, bounds, multiprocessors).items():
        spans = clip(union(ops.start[rows], ops.end[rows]), begin, end)
        owned[owner] = subtract(spans, taken)
        taken = merge(taken, spans)
    return owned


def ops_by_regime(ops: DeviceOps, bounds: KernelBounds, multiprocessors: int | None) -> dict[Regime, Bools]:
    """Which operations would own the time in which they run alone, by owner, in order of precedence."""
    untold = bounds.bound_by == BoundBy.UNKNOWN
    small = underfilled(ops, multiprocessors) & np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN))
    return {
        Regime.COMPUTE: ((bounds.bound_by == BoundBy.COMPUTE) | (untold & (ops.work == Work.CONTRACTION))) & ~small,
        Regime.MEMORY: ((bounds.bound_by == BoundBy.MEMORY) | (untold & np.isin(ops.work, STREAMS))) & ~small,
        Regime.UNDERFILLED: small,
        Regime.UNEXPLAINED: untold & (ops.work == Work.UNKNOWN) & ~small,
        Regime.COMMUNICATION: np.isin(ops.work, (Work.COLLECTIVE, Work.PEER_COPY)),
        Regime.TRANSFER: np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)),
    }
