"""The account of each window of telemetry, and what limits the work of the device in that window.

The account of a window is the share of each regime in the time of the window. Shares that cannot be assigned belong to
`unexplained`:

    1 = busy ┬ other tenants ─▶ unexplained
             └ own work ──────▶ memory, compute, underfilled by the device's counters; else unexplained
      + idle ┬ beyond the cadence ─▶ interruption
             ├ in the loader ──────▶ input
             ├ in copies ──────────▶ transfer
             ├ outside the phases ─▶ host
             └ inside them ────────▶ allocator if allocations repeat; launch if nothing waits and every phase is
                                     timed; otherwise unexplained

The host regimes get time in this order, and at most the idle time that remains: a wait of the host while the device is
busy costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.window_signals import Signals
from tb_bottleneck.base.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.knowledge.gpus import GIGA, lane_rates
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.telemetry.windows import Windows

# Shares of the peaks that the best kernels reach: copies reach 85 to 92 % of the bandwidth, matrix products 78 to 87 %
# of the arithmetic (STAS, ml-engineering, maximum achievable matmul FLOPS).
BANDWIDTH_REACHED, ARITHMETIC_REACHED = 0.85, 0.80
# Our own rough thresholds for devices without profiling counters. They apply only if the device is busy most of the
# time.
MEMORY_ACCESSED = 0.70  # the driver's memory activity is a share of time, not of bandwidth, so it must be high
POWER_OF_ARITHMETIC = 0.80  # share of the power limit; streaming kernels stay below it
POWER_OF_LITTLE_WORK = 0.45  # a device that is always busy with less power than this runs small kernels
MOSTLY_BUSY = 0.50
# Copies of pageable memory reach a third to a fifth of the link's bandwidth. They take at most this many times as
# long as the traffic needs at full bandwidth.
SLOWEST_COPY = 5.0


@dataclass(frozen=True)
class DeviceBounds:
    """Estimates of what limits the device's work, and of how long its link to the host copies. One value per window."""

    split: dict[Regime, Floats]
    """For each regime, the share of the device's work for this process that the regime owns. The shares of a window sum
    to at most 1, and to 0 if what limits the work is unknown."""

    copying: Floats
    """Upper bound of the share of the time in which the link copies; NaN if unknown."""

    counters: bool
    """True if `split` is based on the profiling counters of the device."""


def bounds_of(windows: Windows, signals: Signals) -> DeviceBounds:
    """Returns what limits the device's work in each window, estimated from the device's counters.

    The profiling counters (GPM, Hopper and newer) measure the utilisation of the memory bandwidth and of the arithmetic
    units. Without profiling counters, power and memory activity give a rough estimate, or none.
    """
    dram = windows.mean("dram_activity", of_device=True)
    arithmetic = np.fmax(windows.mean("tensor_activity", of_device=True), windows.mean("fp32_activity", of_device=True))
    counters = bool((~np.isnan(dram) & ~np.isnan(arithmetic)).any())
    filled = windows.mean("sm_activity", of_device=True)
    split = _by_counters(dram, arithmetic, filled, signals) if counters else _by_power(windows, signals)
    return DeviceBounds(split, _copying(windows), counters)


def _by_counters(dram: Floats, arithmetic: Floats, filled: Floats, signals: Signals) -> dict[Regime, Floats]:
    """Returns for each regime its share of the device's work, per window.

    `dram` and `arithmetic` are the utilisation (0 to 1) of the memory bandwidth and of the arithmetic units. `filled`
    is the share of the time in which the multiprocessors have work. The shares of `memory` and `compute` are `dram` and
    `arithmetic`, divided by the utilisation that the best kernels reach. If `filled` is larger than the sum of both,
    slow kernels run in the remaining filled time, and this time is divided in the same ratio. All other work is
    `underfilled`.
    """
    busy = np.fmax(np.fmin(signals.span, signals.utilisation), 1e-3)
    memory, compute = dram / BANDWIDTH_REACHED / busy, arithmetic / ARITHMETIC_REACHED / busy
    known = np.fmax(memory + compute, 1e-9)
    least = np.fmin(np.nan_to_num(filled / busy), 1.0)
    scale = np.clip(1.0 / known, None, np.fmax(least / known, 1.0))
    memory, compute = np.nan_to_num(memory * scale), np.nan_to_num(compute * scale)
    is_known = ~np.isnan(dram) & ~np.isnan(arithmetic)
    return {
        Regime.MEMORY: memory,
        Regime.COMPUTE: compute,
        Regime.UNDERFILLED: np.where(is_known, 1.0 - memory - compute, 0.0),
    }


def _by_power(windows: Windows, signals: Signals) -> dict[Regime, Floats]:
    with np.errstate(invalid="ignore", divide="ignore"):
        power = windows.mean("power", of_device=True) / windows.mean("power_limit", of_device=True)
        accessed = windows.mean("memory_utilisation", of_device=True) / signals.utilisation
        busy = signals.utilisation >= MOSTLY_BUSY
        compute = busy & (power >= POWER_OF_ARITHMETIC)
        memory = busy & ~compute & (accessed >= MEMORY_ACCESSED)
        little = busy & ~memory & (power < POWER_OF_LITTLE_WORK)
    masks = {Regime.MEMORY: memory, Regime.COMPUTE: compute, Regime.UNDERFILLED: little}
    return {regime: mask.astype(float) for regime, mask in masks.items()}


def _copying(windows: Windows) -> Floats:
    traffic = windows.mean("pcie_received", of_device=True) + windows.mean("pcie_sent", of_device=True)
    link = link_bandwidth(windows.mean("pcie_generation", of_device=True), windows.mean("pcie_width", of_device=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(SLOWEST_COPY * traffic / link)


def link_bandwidth(generation: Floats, lanes: Floats) -> Floats:
    """Returns the bandwidth in one direction of PCIe links with these generations and numbers of lanes, in bytes/s.

    NaN where an argument is NaN or the generation is unknown.
    """
    rates = lane_rates()
    lane = np.array([rates.get(int(g), np.nan) if g == g else np.nan for g in np.round(generation).tolist()])
    return np.asarray(lane * GIGA * np.round(lanes))


# Waits of the host for the device per step. With fewer waits, such as for a loss that is logged every few steps, the
# host runs ahead of the device.
OFTEN_WAITING = 0.5
# Memory blocks allocated from or freed to the driver per step. After warm-up, the caching allocator makes no driver
# calls (pytorch docs, notes on CUDA memory management).
CHURNING_ALLOCATIONS = 1.0


@dataclass(frozen=True)
class Accounts:
    """The accounts of all windows. `shares` has for each regime one share per window; the shares of a window sum to 1.

    The other arrays have one value per window. `weight` is the weight of the window in means, in ns.
    """

    shares: dict[Regime, Floats]
    weight: Floats
    idle: Floats
    """Share of the time in which the device is idle; NaN if unknown."""

    ambiguous: Floats
    """Share of the time in which the device is idle because of waits, launches or Python inside the phases of a step.
    Only a trace can tell these three causes apart."""

    at_work: Floats
    """Share of the time in which the device works for this process and no signal shows what limits the device."""

    def whole(self) -> dict[Regime, float]:
        """Returns for each regime the weighted mean of its share over all windows. The shares sum to 1."""
        counts = np.isfinite(self.weight) & (self.weight > 0)
        if not counts.any():
            return {**dict.fromkeys(REGIMES, 0.0), Regime.UNEXPLAINED: 1.0}
        return {
            regime: float(np.average(self.shares[regime][counts], weights=self.weight[counts])) for regime in REGIMES
        }


def accounts_of(signals: Signals, bounds: DeviceBounds, on_device: bool) -> Accounts:
    """Returns the accounts of all windows. If `on_device` is False, the CPU is the device."""
    busy = busy_of(signals) if on_device else _busy_cpu(signals)
    idle = 1.0 - busy
    left = np.nan_to_num(idle)
    if not on_device:  # an interruption is known even if the rest of the step was not timed
        left = np.where(np.isnan(idle), np.minimum(signals.interrupted, 1.0), left)
    shares: dict[Regime, Floats] = {}

    def give(regime: Regime, at_most: Floats) -> None:
        nonlocal left
        shares[regime] = np.clip(np.nan_to_num(at_most), 0.0, left)
        left = left - shares[regime]

    give(Regime.INTERRUPTION, signals.interrupted)
    give(Regime.INPUT, signals.loader)
    give(Regime.TRANSFER, np.fmin(signals.transfer, bounds.copying))
    give(Regime.HOST, signals.outside - shares[Regime.INTERRUPTION])
    churns = signals.allocations >= CHURNING_ALLOCATIONS
    give(Regime.ALLOCATOR, np.where(churns, signals.phases, 0.0))
    nothing_waits = (signals.syncs < OFTEN_WAITING) & ~np.isnan(signals.outside)
    timed = ~np.isnan(signals.phases) | ~np.isnan(signals.loader)
    ambiguous = np.where(timed & ~nothing_waits, left, 0.0)
    give(Regime.LAUNCH, np.where(nothing_waits, left, 0.0))
    own = np.nan_to_num(np.clip(busy - signals.tenants, 0.0, 1.0))
    for regime in DEVICE_REGIMES:
        shares[regime] = own * bounds.split[regime]
    at_work = np.clip(own - sum(shares[regime] for regime in DEVICE_REGIMES), 0.0, 1.0)
    for regime in REGIMES:  # the others have no signal in telemetry
        shares.setdefault(regime, np.zeros_like(left))
    shares[Regime.UNEXPLAINED] = np.clip(1.0 - sum(shares.values()), 0.0, 1.0)
    return Accounts(shares, signals.weight, idle, ambiguous, at_work)


def _busy_cpu(signals: Signals) -> Floats:
    """Returns the busy share of the CPU in each window.

    It is the share of forward, backward and optimizer. Garbage that is collected inside a phase also counts as an
    interruption, so the share is at most the time without loader, copies and interruptions. If a phase is unknown, the
    share is all of that time.
    """
    waiting = np.nan_to_num(signals.transfer) + signals.interrupted
    rest = np.clip(1.0 - signals.loader - waiting, 0.0, 1.0)
    most = np.clip(1.0 - np.nan_to_num(signals.loader) - waiting, 0.0, 1.0)
    return np.where(np.isnan(signals.outside), rest, np.fmin(signals.phases, most))


def busy_of(signals: Signals) -> Floats:
    """Returns the busy share of the device in each window: the smaller one of the signals `span` and `utilisation`.

    If only one of the two signals is known, returns it; if none is known, NaN.
    """
    return np.asarray(np.fmin(signals.span, signals.utilisation))
