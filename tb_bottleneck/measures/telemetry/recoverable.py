"""What each regime could give back in each window: the series from which the stretches of a run are told."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.telemetry.clocks import throttling_loss_by_window
from tb_bottleneck.regime import Regime
from tb_bottleneck.telemetry.bounded_columns import Floats

RECOVERABLE = (Regime.INPUT, Regime.TRANSFER, Regime.LAUNCH, Regime.HOST, Regime.ALLOCATOR, Regime.INTERRUPTION)


def recoverable_by_window(testimony: TelemetryRecording) -> dict[Regime, Floats]:
    """Recoverable share of each window's time by regime; NaN where nothing is known of the window."""
    accounts = testimony.accounts
    known = accounts.weight > 0
    idle = np.nan_to_num(accounts.idle)
    told = sum(accounts.shares[regime] for regime in RECOVERABLE)
    lost = {regime: accounts.shares[regime] for regime in RECOVERABLE}
    lost[Regime.COMPUTE] = throttling_loss_by_window(testimony)
    lost[Regime.UNEXPLAINED] = np.clip(idle - told, 0.0, 1.0) + np.minimum(testimony.signals.tenants, 1.0 - idle)
    return {regime: np.where(known, np.nan_to_num(values), np.nan) for regime, values in lost.items()}


def contention_by_window(testimony: TelemetryRecording, waited: float, queued: float) -> Floats:
    """What a run on the CPU loses to other threads, as a share of each window: of its own work, what did not run while
    more than `queued` threads wanted each usable core and some thread waited for one for `waited` of the time."""
    windows = testimony.windows
    threads = windows.mean("run_queue") / np.fmax(windows.mean("cpu_usable_cores"), 1.0)
    work = 1.0 - np.nan_to_num(testimony.accounts.idle, nan=1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        crowded = (windows.mean("cpu_pressure") >= waited) & (threads > queued)
        return np.where(crowded & (not testimony.on_device), work * (1.0 - 1.0 / threads), 0.0)


def idle_gpu_windows(testimony: TelemetryRecording, below: float) -> Floats:
    """1 for each window in which the device's utilisation is below `below` while steps end; else 0."""
    used = testimony.signals.utilisation
    with np.errstate(invalid="ignore"):
        return np.asarray((used < below) & (testimony.windows.steps > 0), float)
