"""The recoverable time of each regime in each window, and the parts of the time that no regime owns.

The phases of a run are derived from the former. Telemetry sees a step only from outside, so the latter may be large.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.telemetry.clocks import throttling_loss_by_window
from tb_bottleneck.measures.telemetry.core_contention import core_wait_by_window
from tb_bottleneck.measures.telemetry.input_pipeline import cores_usable
from tb_bottleneck.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.telemetry.bounded_columns import Floats

AT_WORK, UNSEEN, IDLE = "at_work", "unseen", "idle"


def recoverable_by_window(recording: TelemetryRecording) -> dict[Regime, Floats]:
    """Returns the recoverable share of each window's time by regime; NaN if nothing is known of the window."""
    accounts = recording.accounts
    is_known = accounts.weight > 0
    idle = np.nan_to_num(accounts.idle)
    lost = {regime: accounts.shares[regime] for regime in AVOIDABLE_REGIMES}
    owned = sum(lost.values())
    lost[Regime.COMPUTE] = throttling_loss_by_window(recording)
    lost[Regime.UNEXPLAINED] = np.clip(idle - owned, 0.0, 1.0) + np.minimum(recording.signals.tenants, 1.0 - idle)
    return {regime: np.where(is_known, np.nan_to_num(values), np.nan) for regime, values in lost.items()}


def contention_by_window(recording: TelemetryRecording, waited: float, queued: float) -> Floats:
    """Returns the share of each window that a CPU run loses to other threads.

    This is the time in which it waits for a core, in windows with a run queue of more than `queued` threads per usable
    core and a core pressure (PSI some) of at least `waited`; at most the part of its own work that does not run.
    """
    windows = recording.windows
    usable = cores_usable(recording)  # of the whole run: it is read less often than the queue
    if isinstance(usable, Missing):
        return np.zeros(len(windows))
    threads = windows.mean("run_queue") / max(usable.value, 1.0)
    work = 1.0 - np.nan_to_num(recording.accounts.idle)
    with np.errstate(invalid="ignore", divide="ignore"):
        crowded = (windows.mean("cpu_pressure") >= waited) & (threads > queued)
        lost = np.minimum(work * (1.0 - 1.0 / threads), np.nan_to_num(core_wait_by_window(recording)))
        return np.where(crowded & (not recording.on_device), lost, 0.0)


def underfilled_by_window(recording: TelemetryRecording, at_least: float, recoverable: float) -> Floats:
    """Returns the share of each window that filling the device could recover.

    This is the part `recoverable` of its underfilled time, in windows with at least the share `at_least` of such time.
    """
    shares = np.nan_to_num(recording.accounts.shares[Regime.UNDERFILLED])
    return np.where(shares >= at_least, recoverable * shares, 0.0)


def idle_gpu_windows(recording: TelemetryRecording, below: float) -> Floats:
    """Returns 1 for each window in which the device's utilisation is below `below` while steps end, 0 for others."""
    used = recording.signals.utilisation
    with np.errstate(invalid="ignore"):
        return np.asarray((used < below) & (recording.windows.steps > 0), float)


@dataclass(frozen=True)
class UnknownTime:
    """The parts of the unexplained time, as shares of the judged time (0 to 1)."""

    at_work: float = 0.0
    """The device works for this process, and nothing shows what limits it."""

    unseen: float = 0.0
    """Inside timed steps; no signal shows whether the device works."""

    idle: float = 0.0
    """The device is idle or works for other processes, and no signal shows why."""

    @property
    def parts(self) -> dict[str, float]:
        """The shares by name."""
        return {AT_WORK: self.at_work, UNSEEN: self.unseen, IDLE: self.idle}

    @property
    def largest(self) -> str:
        """The name of the largest part; `idle` if there is no unexplained time."""
        return max((IDLE, AT_WORK, UNSEEN), key=lambda name: self.parts[name])


def unexplained_idle(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the device is idle or works for other processes, for no known reason (share of the judged time)."""
    return recording.mean(recoverable_by_window(recording)[Regime.UNEXPLAINED], "share", "no window is known")


def unknown_time(recording: TelemetryRecording) -> UnknownTime:
    """Returns the parts of the unexplained time. They sum to its share in the account."""
    share, idle = recording.account.share(Regime.UNEXPLAINED), unexplained_idle(recording)
    lost = 0.0 if isinstance(idle, Missing) else min(idle.value, share)
    work = recording.mean(np.nan_to_num(recording.accounts.at_work), "share", "no window is known")
    busy = 0.0 if isinstance(work, Missing) else min(work.value, share - lost)
    return UnknownTime(busy, max(share - lost - busy, 0.0), lost)
