"""Who owns the time in which the device works.

At every instant the device's time has one owner. A kernel that computes stands before a collective, and that before a
copy over the link: so only exposed collectives and exposed copies own time. Kernels that overlap, on one stream or
several, are counted once.
"""

import numpy as np

from tb_bottleneck.intervals import EMPTY, Spans, clip, merge, subtract, union
from tb_bottleneck.trace.device import DeviceOps, Work
from tb_bottleneck.trace.table import Bools

# Shorter kernels are bounded by neither arithmetic nor bandwidth but by starting and draining: a launch's latency alone
# is 4.5 to 8 us (measured on seven public traces, V100 to H100).
TOO_SHORT_NS = 5_000
# A grid with fewer blocks than this share of the multiprocessors leaves most of the device's arithmetic and bandwidth
# unused, whatever else bounds the kernel (torch-tb-profiler's estimated SM efficiency is this same ratio, capped at 1).
FILLED_SHARE = 0.5


def underfilled(ops: DeviceOps, multiprocessors: int | None) -> Bools:
    """Which kernels cannot fill the device: too few blocks for its multiprocessors, or over at once."""
    short = ops.end - ops.start < TOO_SHORT_NS
    if multiprocessors is None:
        return short
    return short | ((ops.blocks > 0) & (ops.blocks < FILLED_SHARE * multiprocessors))


def busy_by_owner(ops: DeviceOps, multiprocessors: int | None, begin: int, end: int) -> dict[str, Spans]:
    """The busy time of the window as exclusive sets: compute, memory, underfilled, unknown, communication, transfer."""
    small = underfilled(ops, multiprocessors) & np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN))
    claims = {
        "compute": (ops.work == Work.CONTRACTION) & ~small,
        "memory": np.isin(ops.work, (Work.STREAMING, Work.DEVICE_COPY)) & ~small,
        "underfilled": small,
        "unknown": (ops.work == Work.UNKNOWN) & ~small,
        "communication": np.isin(ops.work, (Work.COLLECTIVE, Work.PEER_COPY)),
        "transfer": np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)),
    }
    owned, taken = {}, EMPTY
    for owner, rows in claims.items():
        spans = clip(union(ops.start[rows], ops.end[rows]), begin, end)
        owned[owner] = subtract(spans, taken)
        taken = merge(taken, spans)
    return owned
