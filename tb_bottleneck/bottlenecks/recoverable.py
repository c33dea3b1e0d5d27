"""The recoverable time of each regime in each window, the unexplained time, and the waits for cores.

The recoverable time is the time that a fix could save at most. A window is one of the equal intervals into which the
judged time is divided.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.bottlenecks.input.pipeline import configured_workers, cores_usable
from tb_bottleneck.bottlenecks.input.storage import workers_queue
from tb_bottleneck.measures.telemetry.device import FEW_BYTES, bytes_in_tensors, throttling_loss_by_window
from tb_bottleneck.measures.telemetry.host import run_queue_per_core
from tb_bottleneck.measures.unaffected_steps import fast_step
from tb_bottleneck.telemetry.bounded_columns import Floats

ALWAYS_RUNNABLE = 0.9
"""If the process runs or waits for a core for less than this share of the time, the process also sleeps (without noise,
the share of a process that never sleeps would be 1). The wait of a process that sleeps cannot be estimated from the
machine's run queue, because the scheduler prefers threads that slept."""


def core_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the main thread of the process is runnable and waits for a core (share of the judged time).

    Threads of one operator wait for one another, so waits of the other threads may cost the process more time.

    The scheduler counts the time in which a thread is runnable while another thread uses the core. Without this count,
    the time is estimated: a thread that shares a core fairly with q - 1 others waits q - 1 times as long as it runs. In
    tests with loops of 2 to 100 ms of work and 0 to 100 ms of sleep, on a machine with 2.0 to 3.2 runnable threads per
    core (Linux 6.18), the estimate was wrong by at most 0.06 of the time. A process that already uses as many cores as
    it has threads, or all cores that it may use, is assumed not to wait: the runnable threads are its own.
    """
    missing = recording.why_missing("core_wait_total")
    return recording.mean(core_wait_by_window(recording), "share", f"{missing}, nor what estimates it")


def contention_limit(recording: TelemetryRecording) -> Measure | Missing:
    """Largest share of the time that a fix of waits for a core can save, according to the steps in windows without such
    waits.

    Missing if the process waits for a core in all windows, or in all but a few.
    """
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
    """Number of intra-op threads that fits the cores of this process (count): usable cores / number of processes of the
    job on this machine."""
    cores = cores_usable(recording)
    if isinstance(cores, Missing):
        return cores
    each = cores.value / max(recording.fact("local_world_size") or 1.0, 1.0)
    return Measure(float(max(int(each), 1)), "count", source=cores.source)


def threads_beside_others(recording: TelemetryRecording) -> Measure | Missing:
    """Number of intra-op threads that fits this process's fair share of the cores if other processes use the cores too
    (count).

    If each of n processes has as many threads as there are cores, n threads compete for each core, and the fair share
    is cores / n. Missing if the process has no more threads than its fair share.
    """
    threads, queued = recording.fact("torch_threads"), run_queue_per_core(recording)
    if not threads or isinstance(queued, Missing):
        return Missing("torch_threads is not among the facts") if isinstance(queued, Measure) else queued
    fair = max(int(threads / max(queued.value, 1.0)), 1)
    if fair >= threads:
        return Missing("the process has no more threads than its share of the cores")
    return Measure(float(fair), "count", source=queued.source)


def thread_runs(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the training thread runs on a core (share of the judged time). In all other time, the thread waits
    or sleeps."""
    cpu, wall = recording.per_step("thread_cpu", "ns"), recording.per_step("wall", "ns")
    if isinstance(cpu, Missing) or isinstance(wall, Missing):
        return Missing(recording.why_missing("thread_cpu"))
    return Measure(min(cpu.value / wall.value, 1.0), "share", "window", cpu.count, cpu.source)


def loader_core_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which a worker of the loader waits for a core; without workers, time in which the training process waits
    for a core (share of the time)."""
    return workers_queue(recording) if configured_workers(recording) else core_wait(recording)


def core_wait_by_window(recording: TelemetryRecording) -> Floats:
    """Returns for each window the share (0 to 1) in which the main thread waits for a core (see `core_wait`); NaN if
    unknown."""
    windows = recording.windows
    counted = windows.growth("core_wait_total") / windows.grid.width
    return np.asarray(np.clip(np.where(np.isnan(counted), _estimated(recording), counted), 0.0, 1.0))


def _estimated(recording: TelemetryRecording) -> Floats:
    """Returns for each window an estimate of the time in which the process waits for a core, as a share of the window:
    c (q - 1), where the process uses c cores and there are q runnable threads per core.

    The estimate is at most the number of cores that the process could use but does not. It is 0 if the process also
    sleeps, and NaN if c or q is not known.
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
    """Returns for each regime an array with the share (0 to 1) of each window that a fix could save at most; NaN for
    windows of which nothing is known.

    The phases of a run are derived from these shares.
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
    """Returns for each window of a CPU run the share (0 to 1) in which the process waits for a core; all 0 for runs on
    a device.

    The share is 0 in windows whose run queue has at most `queued` threads per usable core, or whose core pressure (the
    share of the time in which at least one thread waits for a core: PSI `some`, 0 to 1) is below `waited`. The share is
    at most the working time of the process x (1 - 1 / threads per core), the part of this time in which its threads
    wait if all threads share the cores equally.
    """
    windows = recording.windows
    usable = cores_usable(recording)  # the mean of the whole run, because it is read less often than the queue
    if isinstance(usable, Missing):
        return np.zeros(len(windows))
    threads = windows.mean("run_queue") / max(usable.value, 1.0)
    work = 1.0 - np.nan_to_num(recording.accounts.idle)
    with np.errstate(invalid="ignore", divide="ignore"):
        crowded = (windows.mean("cpu_pressure") >= waited) & (threads > queued)
        lost = np.minimum(work * (1.0 - 1.0 / threads), np.nan_to_num(core_wait_by_window(recording)))
        return np.where(crowded & (not recording.on_device), lost, 0.0)


def underfilled_by_window(recording: TelemetryRecording, at_least: float, recoverable: float) -> Floats:
    """Returns for each window the share (0 to 1) that could be saved if the work filled the device.

    The result is the window's share of the regime `underfilled` x `recoverable` (the part of this time that can be
    saved, 0 to 1), or 0 if the window's share is below `at_least`.
    """
    shares = np.nan_to_num(recording.accounts.shares[Regime.UNDERFILLED])
    return np.where(shares >= at_least, recoverable * shares, 0.0)


def idle_gpu_windows(recording: TelemetryRecording, below: float) -> Floats:
    """Returns for each window 1 if the device's utilisation (0 to 1) is below `below` although steps end in it, else 0.

    All values are 0 if the run has tensors on the device.
    """
    used, tensors = recording.signals.utilisation, bytes_in_tensors(recording)
    if isinstance(tensors, Measure) and tensors.value >= FEW_BYTES:
        return np.zeros(len(used))
    with np.errstate(invalid="ignore"):
        return np.asarray((used < below) & (recording.windows.steps > 0), float)


@dataclass(frozen=True)
class UnknownTime:
    """The three parts of the time of the regime `unexplained`, as shares of the judged time (0 to 1).

    Telemetry sees a step only from outside, so these parts may be large.
    """

    at_work: float = 0.0
    """The device works for this process, and nothing shows what limits this work."""

    unseen: float = 0.0
    """Inside timed steps; no signal shows whether the device works."""

    idle: float = 0.0
    """The device works for other processes, or it is idle and no signal shows why."""

    @property
    def parts(self) -> dict[str, float]:
        """The three shares by name: AT_WORK, UNSEEN, IDLE."""
        return {AT_WORK: self.at_work, UNSEEN: self.unseen, IDLE: self.idle}

    @property
    def largest(self) -> str:
        """The name of the largest part; IDLE if there is no unexplained time."""
        return max((IDLE, AT_WORK, UNSEEN), key=lambda name: self.parts[name])


def unexplained_idle(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the judged time in which the device is idle for no known reason, or works for other processes."""
    return recording.mean(recoverable_by_window(recording)[Regime.UNEXPLAINED], "share", "no window is known")


def unknown_time(recording: TelemetryRecording) -> UnknownTime:
    """Returns the parts of the unexplained time. Their sum is the share of the regime `unexplained` in the account."""
    share, idle = recording.account.share(Regime.UNEXPLAINED), unexplained_idle(recording)
    lost = 0.0 if isinstance(idle, Missing) else min(idle.value, share)
    work = recording.mean(np.nan_to_num(recording.accounts.at_work), "share", "no window is known")
    busy = 0.0 if isinstance(work, Missing) else min(work.value, share - lost)
    return UnknownTime(busy, max(share - lost - busy, 0.0), lost)
