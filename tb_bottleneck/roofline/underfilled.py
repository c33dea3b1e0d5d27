"""Which kernels are too small to fill the device, whatever else bounds them."""

from tb_bottleneck.trace.device_ops import DeviceOps
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
