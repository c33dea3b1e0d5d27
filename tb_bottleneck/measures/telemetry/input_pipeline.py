"""Measures of the input pipeline: the wait in the loader, its workers, the cores and the storage.

For workers, cores and storage, windows are weighted by the time in which the device waits for data: usually that is one
phase of a long run.
"""

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.regime import Regime


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
    return recording.mean(recording.accounts.idle, "share", "neither gpu_utilisation nor device_busy was recorded")


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


def _starved(recording: TelemetryRecording, name: str, unit: str) -> Measure | Missing:
    return recording.while_starved(recording.windows.mean(name), unit, recording.why_missing(name))
