"""What bounds the device's own work, and how much of the time its link can have been busy, by the device's counters.

The profiling counters (GPM, Hopper and newer) tell how much of the bandwidth and of the arithmetic units was in use.
Without them power and memory activity give a rough answer, or none.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.window_signals import Signals
from tb_bottleneck.knowledge.gpus import GIGA
from tb_bottleneck.knowledge.pcie import lane_rates
from tb_bottleneck.regime import Regime
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.telemetry.windows import Windows

# What kernels that are bound by it reach of the peak: copies 85 to 92 % of the bandwidth, the best matrix products 78
# to 87 % of the arithmetic (STAS, ml-engineering, maximum achievable matmul FLOPS).
BANDWIDTH_REACHED, ARITHMETIC_REACHED = 0.85, 0.80
# Rough signs, ours, for devices without profiling counters; each only on a device that is busy most of the time.
MEMORY_ACCESSED = 0.70  # memory activity as the driver counts it is time, not bandwidth, so it has to be high
POWER_OF_ARITHMETIC = 0.80  # of the limit: streaming kernels stay below
POWER_OF_LITTLE_WORK = 0.45  # a device that is always busy and draws less than this runs small kernels
MOSTLY_BUSY = 0.50
# Pageable copies run at a third to a fifth of what the link can do, so the link's traffic bounds the time of copies
# only up to such a factor.
SLOWEST_COPY = 5.0


@dataclass(frozen=True)
class Bounds:
    """One number per window."""

    split: dict[Regime, Floats]
    """Parts of the device's own work by regime; they sum to 1, or to 0 where nothing tells."""

    copying: Floats
    """Most of the time that copies over the link can have taken; NaN where nothing tells."""

    counters: bool
    """Whether the split rests on the profiling counters."""


def bounds_of(windows: Windows, signals: Signals) -> Bounds:
    """The bounds of all windows."""
    dram = windows.mean("dram_activity", of_device=True)
    arithmetic = np.fmax(windows.mean("tensor_activity", of_device=True), windows.mean("fp32_activity", of_device=True))
    counters = bool((~np.isnan(dram) & ~np.isnan(arithmetic)).any())
    split = _by_counters(dram, arithmetic, signals) if counters else _by_power(windows, signals)
    return Bounds(split, _copying(windows), counters)


def _by_counters(dram: Floats, arithmetic: Floats, signals: Signals) -> dict[Regime, Floats]:
    """Time at each roof is the counter over what bound kernels reach; the rest fills the device badly."""
    busy = np.fmax(np.fmin(signals.span, signals.utilisation), 1e-3)
    memory, compute = dram / BANDWIDTH_REACHED / busy, arithmetic / ARITHMETIC_REACHED / busy
    too_much = np.fmax(memory + compute, 1.0)
    memory, compute = np.nan_to_num(memory / too_much), np.nan_to_num(compute / too_much)
    known = ~np.isnan(dram) & ~np.isnan(arithmetic)
    return {
        Regime.MEMORY: memory,
        Regime.COMPUTE: compute,
        Regime.UNDERFILLED: np.where(known, 1.0 - memory - compute, 0.0),
    }


def _by_power(windows: Windows, signals: Signals) -> dict[Regime, Floats]:
    with np.errstate(invalid="ignore", divide="ignore"):
        power = windows.mean("power", of_device=True) / windows.mean("power_limit", of_device=True)
        accessed = windows.mean("memory_utilisation", of_device=True) / signals.utilisation
        busy = signals.utilisation >= MOSTLY_BUSY
        compute = busy & (power >= POWER_OF_ARITHMETIC)
        memory = busy & ~compute & (accessed >= MEMORY_ACCESSED)
        little = busy & ~memory & (power < POWER_OF_LITTLE_WORK)
    found = {Regime.MEMORY: memory, Regime.COMPUTE: compute, Regime.UNDERFILLED: little}
    return {regime: where.astype(float) for regime, where in found.items()}


def _copying(windows: Windows) -> Floats:
    traffic = windows.mean("pcie_received", of_device=True) + windows.mean("pcie_sent", of_device=True)
    link = link_bandwidth(windows.mean("pcie_generation", of_device=True), windows.mean("pcie_width", of_device=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(SLOWEST_COPY * traffic / link)


def link_bandwidth(generation: Floats, lanes: Floats) -> Floats:
    """Bytes per second in one direction; NaN where either is not known or no such generation is."""
    rates = lane_rates()
    lane = np.array([rates.get(int(g), np.nan) if g == g else np.nan for g in np.round(generation).tolist()])
    return np.asarray(lane * GIGA * np.round(lanes))
