"""Measures of how long the training process itself waits for a core, as opposed to other processes of the machine.

The scheduler counts the time in which a thread is runnable and another one has its core. In recordings without that
count it is estimated: a thread that shares a core fairly with q - 1 others waits q - 1 times as long as it runs.
Measured with loops of 2 to 100 ms of work and 0 to 100 ms of sleep on a machine with 2.0 to 3.2 runnable threads per
core (Linux 6.18): the estimate is off by 0.06 of the time at most. A process that already uses as many cores as it has
threads, or may use, waits for none: the queue is its own.
"""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.fast_steps import fast_step
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
