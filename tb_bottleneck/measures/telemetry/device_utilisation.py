"""How the device works: busy, with what, at which clock, and for whom."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.regime import Regime

_COUNTERS = "; reading the profiling counters takes a Hopper or newer device and the permission"


def utilisation(testimony: TelemetryRecording) -> Measure | Missing:
    """Time in which any kernel ran, of the judged time (share)."""
    return testimony.of_series("gpu_utilisation", "share", of_device=True)


def own_work(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the judged time, what the device worked for this process, or the CPU where that is the device (share)."""
    busy = 1.0 - testimony.accounts.idle
    if testimony.on_device:
        busy = np.maximum(busy - testimony.signals.tenants, 0.0)
    return testimony.mean(busy, "share", "neither gpu_utilisation nor device_busy was recorded")


def bandwidth_used(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the peak memory bandwidth, what was in use, mean (share)."""
    return _counter(testimony, "dram_activity")


def tensor_cores_used(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what the tensor cores worked, mean (share)."""
    return _counter(testimony, "tensor_activity")


def fp32_used(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what the fp32 units worked, mean (share)."""
    return _counter(testimony, "fp32_activity")


def multiprocessors_used(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time and the multiprocessors, what had a warp, mean (share)."""
    return _counter(testimony, "sm_activity")


def mean_power_share(testimony: TelemetryRecording) -> Measure | Missing:
    """Power drawn, of the limit in force, mean (share)."""
    power, limit = (testimony.windows.mean(name, of_device=True) for name in ("power", "power_limit"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return testimony.mean(power / limit, "share", testimony.why_missing("power"))


def memory_accessed(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what device memory was accessed, mean (share)."""
    return testimony.of_series("memory_utilisation", "share", of_device=True)


def bound_known(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the device's own work, what some counter tells the bound of (share)."""
    work = own_work(testimony)
    if isinstance(work, Missing):
        return work
    told = sum(testimony.account.share(regime) for regime in (Regime.MEMORY, Regime.COMPUTE, Regime.UNDERFILLED))
    if told < 0.5 * work.value:
        return Missing("what the kernels are bound by" + _COUNTERS if testimony.on_device else "shapes of operators")
    return Measure(min(told / max(work.value, 1e-9), 1.0), "share", "", len(testimony.windows), EVIDENCE_SOURCE)


def bound_source(testimony: TelemetryRecording) -> Measure | Missing:
    """Which counters tell the bound (words)."""
    by_counters = "the device's profiling counters"
    return text_measure(by_counters if testimony.bounds.counters else "power and memory activity, which is rough")


def other_processes(testimony: TelemetryRecording) -> Measure | Missing:
    """Other processes with work on the device, mean (count)."""
    return testimony.of_series("other_processes", "count", of_device=True)


def other_processes_utilisation(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what kernels of other processes ran, mean (share)."""
    return testimony.of_series("other_processes_utilisation", "share", of_device=True)


def process_cores(testimony: TelemetryRecording) -> Measure | Missing:
    """Cores that this process used, without its children, mean (count)."""
    return testimony.of_series("process_cores", "count")


def _counter(testimony: TelemetryRecording, name: str) -> Measure | Missing:
    found = testimony.of_series(name, "share", of_device=True)
    return Missing(found.because + _COUNTERS) if isinstance(found, Missing) else found
