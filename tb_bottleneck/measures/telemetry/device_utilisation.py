"""Measures of the device's utilisation: the units in use, the power drawn, and the processes that use it."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.regime import DEVICE_REGIMES

_COUNTERS = "; the profiling counters need a Hopper or newer device, and the permission to read them"
_NO_SHAPES = "telemetry does not contain the shapes of operators"


def utilisation(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which any kernel runs (share of the judged time)."""
    return recording.of_series("gpu_utilisation", "share", of_device=True)


def own_work(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the device, or the CPU on a CPU run, works for this process (share of the judged time)."""
    busy = 1.0 - recording.accounts.idle
    if recording.on_device:
        busy = np.maximum(busy - recording.signals.tenants, 0.0)
    return recording.mean(busy, "share", recording.idle_missing)


def bandwidth_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean memory bandwidth in use (share of the peak)."""
    return _counter(recording, "dram_activity")


def tensor_cores_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which the tensor cores work (share)."""
    return _counter(recording, "tensor_activity")


def fp32_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which the fp32 units work (share)."""
    return _counter(recording, "fp32_activity")


def multiprocessors_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which a multiprocessor has a warp, over all multiprocessors (share)."""
    return _counter(recording, "sm_activity")


def mean_power_share(recording: TelemetryRecording) -> Measure | Missing:
    """Mean power drawn (share of the limit in force)."""
    power, limit = (recording.windows.mean(name, of_device=True) for name in ("power", "power_limit"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return recording.mean(power / limit, "share", recording.why_missing("power"))


def memory_accessed(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which device memory is accessed (share)."""
    return recording.of_series("memory_utilisation", "share", of_device=True)


def bound_known(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the device's own work with a limit that the counters show (share)."""
    work = own_work(recording)
    if isinstance(work, Missing):
        return work
    classified = sum(recording.account.share(regime) for regime in DEVICE_REGIMES)
    if classified < 0.5 * work.value:
        because = f"the limit of the kernels is not known{_COUNTERS}" if recording.on_device else _NO_SHAPES
        return Missing(because)
    return Measure(min(classified / max(work.value, 1e-9), 1.0), "share", "", len(recording.windows), EVIDENCE_SOURCE)


def bound_source(recording: TelemetryRecording) -> Measure | Missing:
    """The counters that show the limit of the device's work (text)."""
    by_counters = "the device's profiling counters"
    return text_measure(by_counters if recording.bounds.counters else "power and memory activity (a rough estimate)")


def other_processes(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of other processes with work on the device (count)."""
    return recording.of_series("other_processes", "count", of_device=True)


def other_processes_utilisation(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which kernels of other processes run (share)."""
    return recording.of_series("other_processes_utilisation", "share", of_device=True)


def process_cores(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of cores used by this process, without its children (count)."""
    return recording.of_series("process_cores", "count")


def _counter(recording: TelemetryRecording, name: str) -> Measure | Missing:
    value = recording.of_series(name, "share", of_device=True)
    return Missing(value.because + _COUNTERS) if isinstance(value, Missing) else value
