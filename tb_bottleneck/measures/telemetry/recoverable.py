"""The recoverable time of each regime in each window, the unexplained time, and the waits for cores."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.measures.fast_steps import fast_step
from tb_bottleneck.measures.telemetry.device import throttling_loss_by_window
from tb_bottleneck.measures.telemetry.input_pipeline import configured_workers, cores_usable
from tb_bottleneck.measures.telemetry.step_phases import run_queue_per_core
from tb_bottleneck.measures.telemetry.storage import workers_queue
from tb_bottleneck.telemetry.bounded_columns import Floats

ALWAYS_RUNNABLE = 0.9
"""A process that runs and waits for less of the time than this also sleeps: it gets less than its fair share of a core
(1 without noise). How long it would wait cannot be estimated from the machine's queue then, since sleepers go first."""


def core_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the main thread of the process is runnable and waits for a core (share of the judged time).

    Threads of one operator wait for one another, so the loss of a process with several threads is at least this.

    The scheduler counts the time in which a thread is runnable and another one has its core. In recordings without that
    count it is estimated: a thread that shares a core fairly with q - 1 others waits q - 1 times as long as it runs.
    Measured with loops of 2 to 100 ms of work and 0 to 100 ms of sleep on a machine with 2.0 to 3.2 runnable threads
    per core (Linux 6.18): the estimate is off by 0.06 of the time at most. A process that already uses as many cores as
    it has threads, or may use, waits for none: the queue is its own.
    """
    missing = recording.why_missing("core_wait_total")
    return recording.mean(core_wait_by_window(recording), "share", f"{missing}, nor what estimates it")


def contention_limit(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the time that steps in windows without such a wait allow to recover; missing if all windows have it."""
    windows = recording.windows
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = windows.wall / windows.steps
    known = np.isfinite(steps) & ~np.isnan(core_wait_by_window(recording))
    fast = fast_step(steps[known], core_wait_by_window(recording)[known] * steps[known])
    if not fast:
        return Missing("the process waits for a core in all windows, or in all but a few")
    share = 1 - fast / float(np.average(steps[known], weights=windows.steps[known]))
    return Measure(max(share, 0.0), "share", "window", int(known.sum()))


def threads_to_use(recording: TelemetryRecording) -> Measure | Missing:
    """Intra-op threads that fit the cores of this process (count): the usable cores per process of this machine."""
    cores = cores_usable(recording)
    if isinstance(cores, Missing):
        return cores
    each = cores.value / max(recording.fact("local_world_size") or 1.0, 1.0)
    return Measure(float(max(int(each), 1)), "count", source=cores.source)


def threads_beside_others(recording: TelemetryRecording) -> Measure | Missing:
    """Intra-op threads with which this process takes its share of crowded cores (count), if those are fewer than now.

    With as many threads as cores in each of n processes, n threads want each core, and the share is cores / n.
    """
    threads, queued = recording.fact("torch_threads"), run_queue_per_core(recording)
    if not threads or isinstance(queued, Missing):
        return Missing("torch_threads is not among the facts") if isinstance(queued, Measure) else queued
    fair = max(int(threads / max(queued.value, 1.0)), 1)
    if fair >= threads:
        return Missing("the process has no more threads than its share of the cores")
    return Measure(float(fair), "count", source=queued.source)


def thread_runs(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the training thread runs on a core (share of the judged time); the rest it waits or sleeps."""
    cpu, wall = recording.per_step("thread_cpu", "ns"), recording.per_step("wall", "ns")
    if isinstance(cpu, Missing) or isinstance(wall, Missing):
        return Missing(recording.why_missing("thread_cpu"))
    return Measure(min(cpu.value / wall.value, 1.0), "share", "window", cpu.count, cpu.source)


def loader_core_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the workers wait for a core; without workers, the training process (share of the time)."""
    return workers_queue(recording) if configured_workers(recording) else core_wait(recording)


def core_wait_by_window(recording: TelemetryRecording) -> Floats:
    """Returns the same for each window; NaN if it is not known."""
    windows = recording.windows
    counted = windows.growth("core_wait_total") / windows.grid.width
    return np.asarray(np.clip(np.where(np.isnan(counted), _estimated(recording), counted), 0.0, 1.0))


def _estimated(recording: TelemetryRecording) -> Floats:
    """Returns c (q - 1) for c cores in use and q threads per core, at most the cores that it could use but does not.

    It is 0 if the process also sleeps, and NaN if it is not known.
    """
    windows = recording.windows
    cores = windows.mean("process_cores")
    own, queued = recording.of_series("process_cores", "count"), run_queue_per_core(recording)
    usable = cores_usable(recording)
    if isinstance(own, Missing) or isinstance(queued, Missing) or isinstance(usable, Missing):
        return np.full(len(windows), np.nan)
    queue = windows.mean("run_queue") / usable.value
    if own.value * queued.value < ALWAYS_RUNNABLE:
        return np.where(np.isnan(cores * queue), np.nan, 0.0)
    wanted = min(max(recording.fact("torch_threads") or np.inf, 1.0), usable.value)
    return np.asarray(np.maximum(np.minimum(cores * (queue - 1.0), wanted - cores), 0.0))


AT_WORK, UNSEEN, IDLE = "at_work", "unseen", "idle"


def recoverable_by_window(recording: TelemetryRecording) -> dict[Regime, Floats]:
    """Returns the recoverable share of each window's time by regime; NaN if nothing is known of the window.

    The phases of a run are derived from it.
    """
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
    """The parts of the time that no regime owns, as shares of the judged time (0 to 1).

    Telemetry sees a step only from outside, so they may be large.
    """

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
