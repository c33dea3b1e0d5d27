"""The account from telemetry, per window: each share has one owner, and what cannot be assigned is unexplained.

    1 = busy ┬ other tenants ─▶ unexplained
             └ own work ──────▶ memory, compute, underfilled by the device's counters; else unexplained
      + idle ┬ beyond the cadence ─▶ interruption
             ├ in the loader ──────▶ input
             ├ in copies ──────────▶ transfer
             ├ outside the phases ─▶ host
             └ inside them ────────▶ allocator if allocations repeat; launch if nothing waits and every phase is
                                     timed; otherwise unexplained

Host times are limited to the remaining idle time: a wait while the device is busy costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.device_bound import DeviceBounds
from tb_bottleneck.attribution.telemetry.window_signals import Signals
from tb_bottleneck.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.telemetry.bounded_columns import Floats

# Once every two steps: between rarer waits (a loss that is logged), the host runs ahead.
OFTEN_WAITING = 0.5
# After warm-up, the caching allocator makes no driver calls (pytorch docs, notes on CUDA memory management).
CHURNING_ALLOCATIONS = 1.0


@dataclass(frozen=True)
class Accounts:
    """For each regime, one share per window; the shares of a window sum to 1. `weight` is the weight of a window."""

    shares: dict[Regime, Floats]
    weight: Floats
    idle: Floats
    """Idle share of the device; NaN if unknown."""

    ambiguous: Floats
    """Idle share inside the step due to waits, launches or Python: only a trace can distinguish them."""

    at_work: Floats
    """Share in which the device works for this process, and no signal shows what limits it."""

    def whole(self) -> dict[Regime, float]:
        """Returns the weighted mean of the shares over all windows."""
        counts = np.isfinite(self.weight) & (self.weight > 0)
        if not counts.any():
            return {**dict.fromkeys(REGIMES, 0.0), Regime.UNEXPLAINED: 1.0}
        return {
            regime: float(np.average(self.shares[regime][counts], weights=self.weight[counts])) for regime in REGIMES
        }


def accounts_of(signals: Signals, bounds: DeviceBounds, on_device: bool) -> Accounts:
    """Returns the accounts of all windows."""
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
    """Returns the busy share of the CPU: the phases; if one of them is unknown, all time in which it does not wait.

    Garbage may be collected inside a phase, so an interruption limits them.
    """
    waiting = np.nan_to_num(signals.transfer) + signals.interrupted
    rest = np.clip(1.0 - signals.loader - waiting, 0.0, 1.0)
    most = np.clip(1.0 - np.nan_to_num(signals.loader) - waiting, 0.0, 1.0)
    return np.where(np.isnan(signals.outside), rest, np.fmin(signals.phases, most))


def busy_of(signals: Signals) -> Floats:
    """Returns the device's busy share: the smaller one of its utilisation and its span, or the one that is known."""
    return np.asarray(np.fmin(signals.span, signals.utilisation))
