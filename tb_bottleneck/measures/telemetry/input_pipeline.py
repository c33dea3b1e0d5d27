"""Measures of the input pipeline: the wait in the loader, its workers, the cores and the storage.

For workers, cores and storage, windows are weighted by the time in which the device waits for data: usually that is one
phase of a long run.
"""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import OFF_CADENCE
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.telemetry.step_phases import STEADY
from tb_bottleneck.regime import Regime
from tb_bottleneck.telemetry.bounded_columns import Floats, Times

DEFAULT_WORKERS = 4
"""Workers to begin with if the loader has none: half of the eight that the sweep tries by default."""

MORE_WORKERS = 2
"""Twice as many workers halve a wait that too few of them cause."""

BEYOND_ROUNDS = 1.5
"""With too few workers the long waits come once per round of workers. Waits that come later than this many rounds have
another reason."""


def loader_wait_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time in the loader's iterator per step (ns)."""
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
    """Mean number of live worker processes of the loader (count)."""
    return _starved(recording, "worker_count", "count")


def worker_busy(recording: TelemetryRecording) -> Measure | Missing:
    """Mean use of a core by one worker (share of a core)."""
    cores, count = _starved(recording, "worker_cores", "count"), live_workers(recording)
    if isinstance(cores, Missing):
        return cores
    if isinstance(count, Missing) or count.value < 0.5:
        return Missing("there was no live worker process")
    return Measure(min(cores.value / count.value, 1.0), "share", "", cores.count, EVIDENCE_SOURCE)


def cores_busy(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of busy cores (share of the cores that this process may use)."""
    busy, usable = _starved(recording, "cpu_busy_cores", "count"), cores_usable(recording)
    if isinstance(busy, Missing) or isinstance(usable, Missing):
        return busy if isinstance(busy, Missing) else usable
    return Measure(min(busy.value / max(usable.value, 1e-3), 1.0), "share", "", busy.count, EVIDENCE_SOURCE)


def cores_usable(recording: TelemetryRecording) -> Measure | Missing:
    """Cores that this process may use (count)."""
    sampled = recording.of_series("cpu_usable_cores", "count")
    fact = recording.fact("cores")
    if isinstance(sampled, Missing) and fact:
        return Measure(fact, "count", source=EVIDENCE_SOURCE)
    return sampled


def storage_pressure(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which some thread waits for storage: PSI some (share)."""
    return _starved(recording, "io_pressure", "share")


def disk_busy(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the busiest block device has a request (share)."""
    return _starved(recording, "disk_busy", "share")


def own_cores_while_loading(recording: TelemetryRecording) -> Measure | Missing:
    """Cores that this process itself uses while the device waits for data (count)."""
    return _starved(recording, "process_cores", "count")


def utilisation_deviation(recording: TelemetryRecording) -> Measure | Missing:
    """Fluctuation of the device's utilisation: standard deviation of its readings (share)."""
    _, values = recording.windows.readings("gpu_utilisation", of_device=True)
    if len(values) < 2:
        return Missing(recording.why_missing("gpu_utilisation"))
    return Measure(float(values.std()), "share", "", len(values), EVIDENCE_SOURCE)


def worker_count_to_try(recording: TelemetryRecording) -> Measure | Missing:
    """Workers to try next (count): twice as many as now, at most the cores that this process may use."""
    workers, cores = _workers(recording), cores_usable(recording)
    wanted = MORE_WORKERS * workers if workers else DEFAULT_WORKERS
    most = wanted if isinstance(cores, Missing) else max(int(round(cores.value, 2)), 1)
    return Measure(float(min(wanted, most)), "count", source=EVIDENCE_SOURCE)


def workers_now(recording: TelemetryRecording) -> Measure | Missing:
    """The loader's num_workers (count): as it was configured, or the workers that are alive."""
    if recording.fact("workers") is None and isinstance(live_workers(recording), Missing):
        return Missing("the number of workers is not among the facts of the run")
    return Measure(float(_workers(recording)), "count", source=EVIDENCE_SOURCE)


def worker_start(recording: TelemetryRecording) -> Measure | Missing:
    """How worker processes are started, and whether they outlive an epoch (text)."""
    persistent, method = recording.facts.get("persistent_workers"), recording.facts.get("worker_start")
    if not isinstance(persistent, bool):
        return Missing("the loader's persistent_workers is not among the facts of the run")
    how = f"by {method}, " if method in ("fork", "spawn", "forkserver") else ""
    return text_measure(how + ("once, persistent_workers=True" if persistent else "in each epoch anew"))


def workers_restart(recording: TelemetryRecording) -> Measure | Missing:
    """1 if each epoch starts its workers anew, 0 if they outlive it or there are none (count)."""
    persistent = recording.facts.get("persistent_workers")
    if not isinstance(persistent, bool):
        return Missing("the loader's persistent_workers is not among the facts of the run")
    return Measure(float(not persistent and _workers(recording) > 0), "count", source=EVIDENCE_SOURCE)


def epoch_start_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the loader's wait that is for the first batches of epochs (share of the wait).

    Epochs are recognised by long waits that come at a steady distance, of more steps than the loader has workers.
    """
    total = float(np.nansum(recording.windows.total("loader_wait")))
    if total <= 0:
        return Missing(recording.why_missing("loader_wait"))
    number, beyond = _long_waits(recording)
    distance = np.diff(number)
    if len(distance) < 2:
        return Missing("too few long waits to recognise epochs")
    usual = float(np.median(distance))
    steady = float(np.median(np.abs(distance - usual))) <= STEADY * usual
    if not steady or usual <= BEYOND_ROUNDS * _workers(recording):
        return Measure(0.0, "share", "loader time", len(number), EVIDENCE_SOURCE)
    return Measure(min(float(beyond.sum()) / total, 1.0), "share", "loader time", len(number), EVIDENCE_SOURCE)


def epoch_length(recording: TelemetryRecording) -> Measure | Missing:
    """Steps from one long wait for a batch to the next (count)."""
    distance = np.diff(_long_waits(recording)[0])
    if len(distance) < 2:
        return Missing("too few long waits to recognise epochs")
    return Measure(float(np.median(distance)), "count", "epoch", len(distance) + 1, EVIDENCE_SOURCE)


def _long_waits(recording: TelemetryRecording) -> tuple[Times, Floats]:
    """Return the numbers of the steps that wait much longer than usual for a batch, and by how many ns."""
    number, longest, mean = recording.windows.highest("loader_wait")
    is_known = ~np.isnan(longest)
    if not is_known.any():
        return number[:0], longest[:0]
    usual = float(np.median(mean[is_known]))
    long = is_known & (longest > OFF_CADENCE * usual)
    return number[long], longest[long] - usual


def _workers(recording: TelemetryRecording) -> int:
    configured, alive = recording.fact("workers"), live_workers(recording)
    if configured is not None and configured >= 0:
        return int(configured)
    return round(alive.value) if isinstance(alive, Measure) else 0


def _starved(recording: TelemetryRecording, name: str, unit: str) -> Measure | Missing:
    return recording.while_starved(recording.windows.mean(name), unit, recording.why_missing(name))
