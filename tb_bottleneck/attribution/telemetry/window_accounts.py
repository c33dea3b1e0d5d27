"""The account by telemetry, window by window: every share has one owner, and what cannot be told is unexplained.

    1 = busy ┬ other tenants ─▶ unexplained
             └ own work ──────▶ memory, compute, underfilled by the device's counters; else unexplained
      + idle ┬ beyond the cadence ─▶ interruption
             ├ in the loader ──────▶ input
             ├ in copies ──────────▶ transfer
             ├ outside the phases ─▶ host
             └ inside them ────────▶ allocator where it churns; launch where nothing waits and every phase is
                                     timed; else unexplained

Host times become owners only up to the idle time that is left: a wait behind a busy device costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.device_bound import Bounds
from tb_bottleneck.attribution.telemetry.window_signals import Signals
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.telemetry.bounded_columns import Floats

# Once every two steps: rarer waits (a loss that is logged) let the host run ahead between them.
OFTEN_WAITING = 0.5
# After warm-up the caching allocator asks the driver for nothing (pytorch docs, notes on CUDA memory management).
CHURN = 1.0


@dataclass(frozen=True)
class Accounts:
    """For each regime one share per window; over the regimes they sum to 1. `weight` is what a window counts for."""

    shares: dict[Regime, Floats]
    weight: Floats
    idle: Floats
    """Of the device; NaN where nothing tells."""

    ambiguous: Floats
    """Idle inside the step that waits, launches or Python share: only a trace tells them apart."""

    def whole(self) -> dict[Regime, float]:
        """The shares over all windows."""
        counts = np.isfinite(self.weight) & (self.weight > 0)
        if not counts.any():
            return {**dict.fromkeys(REGIMES, 0.0), Regime.UNEXPLAINED: 1.0}
        return {
            regime: float(np.average(self.shares[regime][counts], weights=self.weight[counts])) for regime in REGIMES
        }


def accounts_of(signals: Signals, bounds: Bounds, on_device: bool) -> Accounts:
    """The accounts of all windows."""
    busy = busy_of(signals) if on_device else _busy_cpu(signals)
    idle = 1.0 - busy
    left = np.nan_to_num(idle)
    shares: dict[Regime, Floats] = {}

    def give(regime: Regime, at_most: Floats) -> None:
        nonlocal left
        shares[regime] = np.clip(np.nan_to_num(at_most), 0.0, left)
        left = left - shares[regime]

    give(Regime.INTERRUPTION, signals.interrupted)
    give(Regime.INPUT, signals.loader)
    give(Regime.TRANSFER, np.fmin(signals.transfer, bounds.copying))
    give(Regime.HOST, signals.outside - shares[Regime.INTERRUPTION])
    churns = signals.allocations >= CHURN
    give(Regime.ALLOCATOR, np.where(churns, signals.phases, 0.0))
    told = (signals.syncs < OFTEN_WAITING) & ~np.isnan(signals.outside)
    timed = ~np.isnan(signals.phases) | ~np.isnan(signals.loader)
    ambiguous = np.where(timed & ~told, left, 0.0)
    give(Regime.LAUNCH, np.where(told, left, 0.0))
    own = np.nan_to_num(np.clip(busy - signals.tenants, 0.0, 1.0))
    for regime in (Regime.MEMORY, Regime.COMPUTE, Regime.UNDERFILLED):
        shares[regime] = own * bounds.split[regime]
    for regime in (Regime.SYNC, Regime.COMMUNICATION):
        shares[regime] = np.zeros_like(left)
    shares[Regime.UNEXPLAINED] = np.clip(1.0 - sum(shares.values()), 0.0, 1.0)
    return Accounts(shares, signals.weight, idle, ambiguous)


def _busy_cpu(signals: Signals) -> Floats:
    """Where the CPU is the device it works in the phases; where one of them is not known, whenever it does not wait."""
    waiting = np.nan_to_num(signals.transfer) + signals.interrupted
    rest = np.clip(1.0 - signals.loader - waiting, 0.0, 1.0)
    return np.where(np.isnan(signals.outside), rest, signals.phases)


def busy_of(signals: Signals) -> Floats:
    """The device's busy share: its utilisation, but no more than its span; whichever is known."""
    return np.asarray(np.fmin(signals.span, signals.utilisation))
