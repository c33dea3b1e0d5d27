"""Measures of the device by telemetry: the units in use, the power drawn, other processes on the device, and clocks.

The reasons for reduced clocks come from NVML's bit mask and counters. Only readings of a loaded device count for the
measures of clocks, because an idle device lowers its clocks by itself.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import DEVICE_REGIMES
from tb_bottleneck.telemetry.bounded_columns import Floats

_COUNTERS = "; the profiling counters need a Hopper or newer device, and the permission to read them"
_NO_SHAPES = "telemetry does not contain the shapes of operators"


def utilisation(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which at least one kernel of any process runs (share of the judged time)."""
    return recording.of_series("gpu_utilisation", "share", of_device=True)


FEW_BYTES = 1e6
"""A model and a batch on the device have more bytes than FEW_BYTES, single values have fewer."""


def bytes_in_tensors(recording: TelemetryRecording) -> Measure | Missing:
    """Highest number of bytes that torch's allocator had in tensors on the device."""
    most = recording.windows.highest("memory_allocated")[1]
    if np.isnan(most).all():
        return Missing(recording.why_missing("memory_allocated"))
    return Measure(float(np.nanmax(most)), "bytes", "", int((~np.isnan(most)).sum()), EVIDENCE_SOURCE)


def own_work(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the device (on a CPU run: the CPU) works for this process (share of the judged time)."""
    busy = 1.0 - recording.accounts.idle
    if recording.on_device:
        busy = np.maximum(busy - recording.signals.tenants, 0.0)
    return recording.mean(busy, "share", recording.idle_missing)


def bandwidth_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean memory bandwidth in use (share of the device's peak)."""
    return _counter(recording, "dram_activity")


def tensor_cores_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which the tensor cores work (share of the judged time)."""
    return _counter(recording, "tensor_activity")


def fp32_used(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which the fp32 units work (share of the judged time)."""
    return _counter(recording, "fp32_activity")


def multiprocessors_used(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which a multiprocessor has a warp: the mean over all multiprocessors (share of the judged time)."""
    return _counter(recording, "sm_activity")


def mean_power_share(recording: TelemetryRecording) -> Measure | Missing:
    """Mean power drawn (share of the power limit in force)."""
    power, limit = (recording.windows.mean(name, of_device=True) for name in ("power", "power_limit"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return recording.mean(power / limit, "share", recording.why_missing("power"))


def memory_accessed(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which device memory is accessed (share of the judged time)."""
    return recording.of_series("memory_utilisation", "share", of_device=True)


def bound_known(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the device's work for this process whose limit is known: arithmetic, bandwidth, or kernels that are too
    small. Missing if the share is less than half."""
    work = own_work(recording)
    if isinstance(work, Missing):
        return work
    classified = sum(recording.account.share(regime) for regime in DEVICE_REGIMES)
    if classified < 0.5 * work.value:
        because = f"the limit of the kernels is not known{_COUNTERS}" if recording.on_device else _NO_SHAPES
        return Missing(because)
    return Measure(min(classified / max(work.value, 1e-9), 1.0), "share", "", len(recording.windows), EVIDENCE_SOURCE)


def bound_source(recording: TelemetryRecording) -> Measure | Missing:
    """The counters that show what limits the device's work, as text."""
    by_counters = "the device's profiling counters"
    return text_measure(by_counters if recording.bounds.counters else "power and memory activity (a rough estimate)")


def other_processes(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of other processes that use the device (count)."""
    return recording.of_series("other_processes", "count", of_device=True)


def other_processes_utilisation(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time in which kernels of other processes run (share of the judged time)."""
    return recording.of_series("other_processes_utilisation", "share", of_device=True)


def process_cores(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of cores used by this process, without its children (count)."""
    return recording.of_series("process_cores", "count")


def _counter(recording: TelemetryRecording, name: str) -> Measure | Missing:
    """Returns the mean of the profiling counter `name`, whose values are shares."""
    value = recording.of_series(name, "share", of_device=True)
    return Missing(value.because + _COUNTERS) if isinstance(value, Missing) else value


# nvmlClocksEventReasons (nvml.h).
IDLE, SOFTWARE_POWER_CAP, HARDWARE_SLOWDOWN = 0x1, 0x4, 0x8
SOFTWARE_THERMAL, HARDWARE_THERMAL, POWER_BRAKE = 0x20, 0x40, 0x80
HEAT = HARDWARE_SLOWDOWN | SOFTWARE_THERMAL | HARDWARE_THERMAL

LOADED_FOR_CLOCKS = 0.50
"""Windows with less utilisation than LOADED_FOR_CLOCKS are left out: their mean clocks include clocks of an idle
device."""


@dataclass(frozen=True)
class _Clocks:
    """What the clocks of the device show, one element per window."""

    loaded: Floats  # windows in which the device is loaded: 1, else 0
    slow: Floats  # 1 - clock / highest clock
    hot: Floats  # part of the window in which heat reduces the clocks
    capped: Floats  # part of the window in which the power limit reduces the clocks
    braked: Floats  # part of the window in which a power brake reduces the clocks


def clock_reduction(recording: TelemetryRecording) -> Measure | Missing:
    """While the device is loaded: mean of 1 - clock / highest clock (share of the highest clock)."""
    return _while_loaded(recording, _clocks(recording).slow, "sm_clock")


def heat_throttled(recording: TelemetryRecording) -> Measure | Missing:
    """While the device is loaded: part of the time in which heat reduces the clocks (share of the loaded time)."""
    return _while_loaded(recording, _clocks(recording).hot, "clock_event_reasons")


def power_capped(recording: TelemetryRecording) -> Measure | Missing:
    """While the device is loaded: part of the time in which the power limit reduces the clocks (share of the loaded
    time)."""
    return _while_loaded(recording, _clocks(recording).capped, "clock_event_reasons")


def power_braked(recording: TelemetryRecording) -> Measure | Missing:
    """While the device is loaded: part of the time in which an external power brake reduces the clocks (share of the
    loaded time)."""
    return _while_loaded(recording, _clocks(recording).braked, "clock_event_reasons")


def loaded_power_share(recording: TelemetryRecording) -> Measure | Missing:
    """While the device is loaded: mean power drawn (share of the power limit in force)."""
    power, limit = (recording.windows.mean(name, of_device=True) for name in ("power", "power_limit"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return _while_loaded(recording, power / limit, "power")


def power_limit_of_default(recording: TelemetryRecording) -> Measure | Missing:
    """The power limit in force (share of the board's default limit)."""
    limit, default = (recording.of_series(name, "W", True) for name in ("power_limit", "power_limit_default"))
    if isinstance(limit, Missing) or isinstance(default, Missing) or default.value <= 0:
        return Missing(recording.why_missing("power_limit_default"))
    return Measure(limit.value / default.value, "share", "", limit.count, EVIDENCE_SOURCE)


def highest_temperature(recording: TelemetryRecording) -> Measure | Missing:
    """The highest temperature in the judged time, as text, for example "83 °C"."""
    _, values = recording.windows.readings("temperature", of_device=True)
    if not len(values):
        return Missing(recording.why_missing("temperature"))
    return text_measure(f"{values.max():.0f} °C", len(values))


def time_lost_to_heat(recording: TelemetryRecording) -> Measure | Missing:
    """Time that the device's work would save at the highest clock, in the time in which heat reduces the clock (share
    of the judged time)."""
    return _lost(recording, _clocks(recording).hot)


def time_lost_to_power(recording: TelemetryRecording) -> Measure | Missing:
    """Time that the device's work would save at the highest clock, in the time in which the power limit or a power
    brake reduces the clock (share of the judged time)."""
    clocks = _clocks(recording)
    return _lost(recording, np.fmax(clocks.capped, clocks.braked))


def throttling_loss_by_window(recording: TelemetryRecording) -> Floats:
    """Returns for each window the share (0 to 1) that the device's work would save if neither heat nor a power brake
    reduced the clock. The power limit is not included, because large boards normally reach it when they compute large
    matrix products."""
    clocks = _clocks(recording)
    return np.nan_to_num(_work(recording, clocks) * clocks.slow * np.minimum(np.fmax(clocks.hot, clocks.braked), 1.0))


def _lost(recording: TelemetryRecording, when: Floats) -> Measure | Missing:
    """Returns the time that the device's work would save at the highest clock (share of the judged time). `when` has
    for each window the part (0 to 1) in which the clock is reduced; only this part is counted."""
    clocks = _clocks(recording)
    lost = _work(recording, clocks) * clocks.slow * np.minimum(when, 1.0)
    return recording.mean(lost, "share", recording.why_missing("sm_clock"))


def _work(recording: TelemetryRecording, clocks: _Clocks) -> Floats:
    """Returns for each window the share (0 to 1) in which the device works; 0 for windows in which the device is not
    loaded."""
    return np.asarray(np.nan_to_num(1.0 - recording.accounts.idle) * clocks.loaded)


def _while_loaded(recording: TelemetryRecording, values: Floats, name: str) -> Measure | Missing:
    """Returns the mean of `values` (one per window) over the windows in which the device is loaded. `name` is the
    series of `values`; if it has no readings, the reason in the Missing names it."""
    loaded = _clocks(recording).loaded > 0
    if not loaded.any():
        return Missing("the device was never busy for half of the time, and only its clocks under load count")
    return recording.mean(np.where(loaded, values, np.nan), "share", recording.why_missing(name))


def _clocks(recording: TelemetryRecording) -> _Clocks:
    """Returns what the clocks of the device show in each window."""
    windows = recording.windows
    loaded = (np.nan_to_num(windows.mean("gpu_utilisation", of_device=True)) >= LOADED_FOR_CLOCKS).astype(float)
    clock, highest = (windows.mean(name, of_device=True) for name in ("sm_clock", "sm_clock_max"))
    with np.errstate(invalid="ignore", divide="ignore"):
        slow = np.clip(1.0 - clock / highest, 0.0, 1.0)
    length = float(windows.grid.width)
    hot = np.fmax(_part_with(recording, HEAT), windows.growth("thermal_capped_total", of_device=True) / length)
    capped = np.fmax(
        _part_with(recording, SOFTWARE_POWER_CAP), windows.growth("power_capped_total", of_device=True) / length
    )
    return _Clocks(loaded, slow, hot, capped, _part_with(recording, POWER_BRAKE))


def _part_with(recording: TelemetryRecording, mask: int) -> Floats:
    """Returns for each window the share (0 to 1) of its readings in which the clock was lowered for one of the reasons
    in the bit mask `mask`. Readings of an idle device are left out; the value is NaN if a window has no other
    readings."""
    when, values = recording.windows.readings("clock_event_reasons", of_device=True)
    reasons = values.astype(np.int64)
    busy = (reasons & IDLE) == 0
    window = recording.windows.grid.window_of(when)
    readings = np.bincount(window, busy.astype(float), len(recording.windows))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.bincount(window, busy & ((reasons & mask) != 0), len(recording.windows)) / readings)
