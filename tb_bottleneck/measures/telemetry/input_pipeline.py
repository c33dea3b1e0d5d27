"""What feeds the device: the loader's wait, its workers, the cores and the storage they work with.

Workers, cores and storage are looked at by the time that the device starved: a stretch of a long run, as a rule.
"""

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.regime import Regime


def loader_wait_time(testimony: TelemetryRecording) -> Measure | Missing:
    """Host time in the loader's iterator, per step (ns)."""
    return testimony.per_step("loader_wait", "ns")


def idle_in_loader(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the judged time, what the device idles while the host waits in the loader (share)."""
    if isinstance(device_idle(testimony), Missing):
        return Missing("neither the device's utilisation nor its busy time was recorded")
    return Measure(testimony.account.share(Regime.INPUT), "share", "window", len(testimony.windows), EVIDENCE_SOURCE)


def device_idle(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the judged time, what the device idles (share)."""
    return testimony.mean(testimony.accounts.idle, "share", "neither gpu_utilisation nor device_busy was recorded")


def live_workers(testimony: TelemetryRecording) -> Measure | Missing:
    """Worker processes of the loader that lived, mean (count)."""
    return _starved(testimony, "worker_count", "count")


def worker_busy(testimony: TelemetryRecording) -> Measure | Missing:
    """Cores that one worker used, mean (share of a core)."""
    cores, count = _starved(testimony, "worker_cores", "count"), live_workers(testimony)
    if isinstance(cores, Missing):
        return cores
    if isinstance(count, Missing) or count.value < 0.5:
        return Missing("no worker process lived")
    return Measure(min(cores.value / count.value, 1.0), "share", "", cores.count, EVIDENCE_SOURCE)


def cores_busy(testimony: TelemetryRecording) -> Measure | Missing:
    """Busy cores of the cores that this process may use, mean (share)."""
    busy, usable = _starved(testimony, "cpu_busy_cores", "count"), cores_usable(testimony)
    if isinstance(busy, Missing) or isinstance(usable, Missing):
        return busy if isinstance(busy, Missing) else usable
    return Measure(min(busy.value / max(usable.value, 1e-3), 1.0), "share", "", busy.count, EVIDENCE_SOURCE)


def cores_usable(testimony: TelemetryRecording) -> Measure | Missing:
    """Cores that this process may use (count)."""
    read = testimony.of_series("cpu_usable_cores", "count")
    stated = testimony.fact("cores")
    if isinstance(read, Missing) and stated:
        return Measure(stated, "count", source=EVIDENCE_SOURCE)
    return read


def storage_pressure(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what some thread waited for storage: PSI some (share)."""
    return _starved(testimony, "io_pressure", "share")


def disk_busy(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what the busiest block device had a request (share)."""
    return _starved(testimony, "disk_busy", "share")


def own_cores_while_loading(testimony: TelemetryRecording) -> Measure | Missing:
    """Cores that this process itself used while the device starved (count)."""
    return _starved(testimony, "process_cores", "count")


def utilisation_deviation(testimony: TelemetryRecording) -> Measure | Missing:
    """How much the device's utilisation fluctuates: standard deviation of its readings (share)."""
    _, values = testimony.windows.readings("gpu_utilisation", of_device=True)
    if len(values) < 2:
        return Missing(testimony.why_missing("gpu_utilisation"))
    return Measure(float(values.std()), "share", "", len(values), EVIDENCE_SOURCE)


def _starved(testimony: TelemetryRecording, name: str, unit: str) -> Measure | Missing:
    return testimony.while_starved(testimony.windows.mean(name), unit, testimony.why_missing(name))
