"""Measures of the input pipeline by telemetry: the wait in the loader, worker processes, cores and storage.

Measures of workers, cores and storage are means over windows (equal intervals of the judged time). Each window is
weighted by the time in it for which the device waits for data, because this time is often concentrated in one phase of
a long run. The monitor samples the stages of making a batch in the loader's workers.
"""

import math

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing, known_value, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.input.loader_workers import MOSTLY_WAITS, WAITING_WORKERS_PER_CORE
from tb_bottleneck.bottlenecks.input.stages import sampled_work, stage_text

MOST_PER_CORE = 8
"""Highest number of workers per core that is advised. Workers that wait can share a core. A choice."""


def slowest_stage(recording: TelemetryRecording) -> Measure | Missing:
    """The stage of making a batch that takes the most time, and its share of the time of all stages, as text."""
    work = sampled_work(recording.facts)
    if isinstance(work, Missing):
        return work
    return text_measure(f"{stage_text(work.stages[0])}, {share_text(work.stages[0].ns / max(work.ns, 1.0))}")


def time_per_batch(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time (ns) that one worker takes to make a batch."""
    work = sampled_work(recording.facts)
    if isinstance(work, Missing) or work.batch_ns is None:
        return work if isinstance(work, Missing) else Missing("the number of batches is not known")
    return Measure(work.batch_ns, "ns", "batch", int(work.batches), EVIDENCE_SOURCE)


def workers_ahead(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the workers' time in which the workers have no batch to make, because their queue is full."""
    work = sampled_work(recording.facts)
    if isinstance(work, Missing) or work.waiting_share is None:
        return work if isinstance(work, Missing) else Missing("the time without a batch was not sampled")
    return Measure(work.waiting_share, "share", "worker time", int(work.batches), EVIDENCE_SOURCE)


def worker_processes_needed(recording: TelemetryRecording) -> Measure | Missing:
    """Number of workers that would make batches as fast as the training uses them if it never waits for a batch
    (count).

    Missing if there would be more than MOST_PER_CORE workers per core.
    """
    if not configured_workers(recording):
        return Missing("the loader has no workers")
    needed, cores = processes_that_keep_up(recording), recording.fact("cores")
    if isinstance(needed, Measure) and cores and needed.value > MOST_PER_CORE * cores:
        return Missing("more workers than this machine can run")
    return needed


def processes_that_keep_up(recording: TelemetryRecording) -> Measure | Missing:
    """Number of workers that would make batches as fast as the training uses them if it never waits for a batch
    (count). The number of cores does not limit this number.

    The number is the time in which one worker makes a batch / the time of the step without the wait for batches,
    rounded up.
    """
    wall, wait = (recording.per_step(name, "ns") for name in ("wall", "loader_wait"))
    batch = time_per_batch(recording) if configured_workers(recording) else wait  # the training makes it meanwhile
    if isinstance(batch, Missing) or isinstance(wall, Missing) or isinstance(wait, Missing):
        return batch if isinstance(batch, Missing) else Missing(recording.why_missing("loader_wait"))
    needed = math.ceil(batch.value / max(wall.value - wait.value, 1.0))
    return Measure(float(max(needed, 1)), "count", "process", batch.count, EVIDENCE_SOURCE)


DEFAULT_WORKERS = 4
"""Number of workers to begin with if the loader has none: half of the eight workers that the sweep tries by default."""

MORE_WORKERS = 2
"""Factor for the number of workers: twice as many workers halve a wait that too few workers cause."""


def loader_wait_time(recording: TelemetryRecording) -> Measure | Missing:
    """Time per step (ns) that the training thread spends in the loader's iterator."""
    return recording.per_step("loader_wait", "ns")


def idle_in_loader(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the device is idle while the host waits in the loader (share of the judged time)."""
    if isinstance(device_idle(recording), Missing):
        return Missing("neither the device's utilisation nor its busy time was recorded")
    return Measure(recording.account.share(Regime.INPUT), "share", "window", len(recording.windows), EVIDENCE_SOURCE)


def device_idle(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the device is idle (share of the judged time)."""
    return recording.mean(recording.accounts.idle, "share", recording.idle_missing)


def live_workers(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of live worker processes of the loader while the device waits for data (count)."""
    return while_starved(recording, "worker_count", "count")


def worker_busy(recording: TelemetryRecording) -> Measure | Missing:
    """Mean use of a core by one worker while the device waits for data (share of a core)."""
    cores, count = while_starved(recording, "worker_cores", "count"), live_workers(recording)
    if isinstance(cores, Missing):
        return cores
    if isinstance(count, Missing) or count.value < 0.5:
        return Missing("there was no live worker process")
    return Measure(min(cores.value / count.value, 1.0), "share", "", cores.count, EVIDENCE_SOURCE)


def cores_busy(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of busy cores while the device waits for data (share of the cores that this process may use)."""
    busy, usable = while_starved(recording, "cpu_busy_cores", "count"), cores_usable(recording)
    if isinstance(busy, Missing) or isinstance(usable, Missing):
        return busy if isinstance(busy, Missing) else usable
    return Measure(min(busy.value / max(usable.value, 1e-3), 1.0), "share", "", busy.count, EVIDENCE_SOURCE)


def cores_of_others(recording: TelemetryRecording) -> Measure | Missing:
    """Cores used by processes other than this one and its workers while the device waits for data (share of the cores
    that this process may use)."""
    busy, usable = while_starved(recording, "cpu_busy_cores", "count"), cores_usable(recording)
    own, workers = own_cores_while_loading(recording), while_starved(recording, "worker_cores", "count")
    if isinstance(busy, Missing) or isinstance(usable, Missing):
        return busy if isinstance(busy, Missing) else usable
    if isinstance(own, Missing) or (isinstance(workers, Missing) and configured_workers(recording)):
        return own if isinstance(own, Missing) else workers
    others = max(busy.value - own.value - (0.0 if isinstance(workers, Missing) else workers.value), 0.0)
    return Measure(min(others / max(usable.value, 1e-3), 1.0), "share", "", busy.count, EVIDENCE_SOURCE)


def cores_usable(recording: TelemetryRecording) -> Measure | Missing:
    """Cores that this process may use (count)."""
    sampled = recording.of_series("cpu_usable_cores", "count")
    fact = recording.fact("cores")
    if isinstance(sampled, Missing) and fact:
        return Measure(fact, "count", source=EVIDENCE_SOURCE)
    return sampled


def storage_pressure(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which at least one thread waits for storage while the device waits for data (share of the device's wait):
    the value `some` of Linux's pressure stall information (PSI)."""
    return while_starved(recording, "io_pressure", "share")


def disk_busy(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the busiest block device (disk) has a request while the device waits for data (share of the
    device's wait)."""
    return while_starved(recording, "disk_busy", "share")


def own_cores_while_loading(recording: TelemetryRecording) -> Measure | Missing:
    """Cores that this process, without its workers, uses while the device waits for data (count)."""
    return while_starved(recording, "process_cores", "count")


def loading_off_core(recording: TelemetryRecording) -> Measure | Missing:
    """Smallest share of the loader's wait in which the training thread neither runs nor waits for a core.

    If the loader has no workers, the thread waits for storage or a network in this time. In the rest of a step, only a
    CPU run with one thread is known to run on a core all the time.
    """
    wall, wait, cpu = (known_value(recording.per_step(name, "ns")) for name in ("wall", "loader_wait", "thread_cpu"))
    queued = recording.windows.growth("core_wait_total") / recording.windows.grid.width
    share = known_value(recording.mean(queued, "share", ""))
    if not wall or not wait or cpu is None or share is None:
        return Missing("the time in which the training thread runs on a core was not recorded")
    alone = not recording.on_device and recording.fact("torch_threads") == 1
    off = (wall if alone else wait) - cpu - share * wall
    return Measure(min(max(off / wait, 0.0), 1.0), "share", "loader time", source=EVIDENCE_SOURCE)


def utilisation_deviation(recording: TelemetryRecording) -> Measure | Missing:
    """Standard deviation of the readings of the device's utilisation, which shows how much it fluctuates (share)."""
    _, values = recording.windows.readings("gpu_utilisation", of_device=True)
    if len(values) < 2:
        return Missing(recording.why_missing("gpu_utilisation"))
    return Measure(float(values.std()), "share", "", len(values), EVIDENCE_SOURCE)


def worker_count_to_try(recording: TelemetryRecording) -> Measure | Missing:
    """Number of workers to try next (count), at most the cores that this process may use, or WAITING_WORKERS_PER_CORE
    times as many if the process makes the batches itself and mostly waits for storage.

    If the time of making a batch was sampled, the result is the number that keeps up with the device, unless the loader
    already has as many. Otherwise the result is MORE_WORKERS times the present number, or DEFAULT_WORKERS without
    workers.
    """
    off_core = known_value(loading_off_core(recording)) or 0.0
    waits = not configured_workers(recording) and off_core >= MOSTLY_WAITS
    return _workers_to_try(recording, WAITING_WORKERS_PER_CORE if waits else 1)


def waiting_workers_to_try(recording: TelemetryRecording) -> Measure | Missing:
    """Number of workers to try next if the workers mostly wait (count), at most WAITING_WORKERS_PER_CORE per core."""
    return _workers_to_try(recording, WAITING_WORKERS_PER_CORE)


def _workers_to_try(recording: TelemetryRecording, per_core: int) -> Measure | Missing:
    """Returns the number of workers to try next, at most `per_core` per core. Missing if the loader already has that
    many workers or more."""
    workers, cores = configured_workers(recording), cores_usable(recording)
    needed = processes_that_keep_up(recording)
    wanted = MORE_WORKERS * workers if workers else DEFAULT_WORKERS
    if isinstance(needed, Measure) and needed.value > workers:  # otherwise the workers wait for something else
        wanted = int(needed.value)
    most = wanted if isinstance(cores, Missing) else max(int(round(cores.value, 2)), 1) * per_core
    if min(wanted, most) <= workers:
        return Missing("the loader has as many workers as this machine can run")
    return Measure(float(min(wanted, most)), "count", source=EVIDENCE_SOURCE)


def workers_beside_main(recording: TelemetryRecording) -> Measure | Missing:
    """Largest number of workers that leaves one core to the training process (count). Missing if the loader has no more
    workers than this number."""
    cores = cores_usable(recording)
    if isinstance(cores, Missing) or cores.value < 2 or not configured_workers(recording):
        return Missing("no worker can be saved")
    most = max(int(round(cores.value, 2)) - 1, 1)
    if configured_workers(recording) <= most:
        return Missing("the workers leave a core to the training process")
    return Measure(float(most), "count", source=EVIDENCE_SOURCE)


def workers_now(recording: TelemetryRecording) -> Measure | Missing:
    """The loader's num_workers as configured, or else the mean number of live workers (count)."""
    if recording.fact("workers") is None and isinstance(live_workers(recording), Missing):
        return Missing("the number of workers is not among the facts of the run")
    return Measure(float(configured_workers(recording)), "count", source=EVIDENCE_SOURCE)


def worker_start(recording: TelemetryRecording) -> Measure | Missing:
    """How worker processes are started, and whether they are used for several epochs, as text."""
    persistent, method = recording.facts.get("persistent_workers"), recording.facts.get("worker_start")
    if not isinstance(persistent, bool):
        return Missing("the loader's persistent_workers is not among the facts of the run")
    how = f"by {method}, " if method in ("fork", "spawn", "forkserver") else ""
    return text_measure(how + ("once, persistent_workers=True" if persistent else "in each epoch anew"))


def operating_system(recording: TelemetryRecording) -> Measure | Missing:
    """The text "Windows" if the training runs on Windows, where workers are spawned; otherwise missing."""
    known = recording.facts.get("os") == "Windows"
    return text_measure("Windows") if known else Missing("not known to be Windows")


def workers_restart(recording: TelemetryRecording) -> Measure | Missing:
    """1 if each epoch starts new workers; 0 if workers are used for several epochs or there are no workers (count)."""
    persistent = recording.facts.get("persistent_workers")
    if not isinstance(persistent, bool):
        return Missing("the loader's persistent_workers is not among the facts of the run")
    return Measure(float(not persistent and configured_workers(recording) > 0), "count", source=EVIDENCE_SOURCE)


def configured_workers(recording: TelemetryRecording) -> int:
    """Returns the loader's num_workers, or if it was not recorded, the rounded mean number of live workers; 0 if both
    are unknown."""
    configured, alive = recording.fact("workers"), live_workers(recording)
    if configured is not None and configured >= 0:
        return int(configured)
    return round(alive.value) if isinstance(alive, Measure) else 0


def while_starved(recording: TelemetryRecording, name: str, unit: str) -> Measure | Missing:
    """Returns the mean of the series `name`, in which each window is weighted by the time in it for which the device
    waits for data. `unit` is the unit of the series."""
    return recording.while_starved(recording.windows.mean(name), unit, recording.why_missing(name))
