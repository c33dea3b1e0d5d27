"""Kernels that are too small to fill the device, regardless of other bounds."""

from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.table import Bools

# Shorter kernels are limited by their start and end, not by arithmetic or bandwidth: the latency of a launch alone is
# 4.5 to 8 us (measured on seven public traces, V100 to H100).
TOO_SHORT_NS = 5_000
# A grid with fewer blocks than this share of the multiprocessors leaves most of the device's arithmetic and bandwidth
# unused (torch-tb-profiler's estimated SM efficiency is the same ratio, capped at 1).
FILLED_SHARE = 0.5


def underfilled(ops: DeviceOps, multiprocessors: int | None) -> Bools:
    """Returns a mask of the kernels that cannot fill the device: too few blocks for it, or too short."""
    is_short = ops.end - ops.start < TOO_SHORT_NS
    if multiprocessors is None:
        return is_short
    return is_short | ((ops.blocks > 0) & (ops.blocks < FILLED_SHARE * multiprocessors))
