"""What holds the device's clocks down, by NVML's bit mask and counters, looked at only while the device is loaded.

An idle device lowers its clocks by itself: those readings are none of a throttled one.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.telemetry.bounded_columns import Floats

# nvmlClocksEventReasons (nvml.h).
IDLE, SOFTWARE_POWER_CAP, HARDWARE_SLOWDOWN = 0x1, 0x4, 0x8
SOFTWARE_THERMAL, HARDWARE_THERMAL, POWER_BRAKE = 0x20, 0x40, 0x80
HEAT = HARDWARE_SLOWDOWN | SOFTWARE_THERMAL | HARDWARE_THERMAL

LOADED_FOR_CLOCKS = 0.50
"""A window with less utilisation than this has idle clocks in its means."""


@dataclass(frozen=True)
class _Clocks:
    loaded: Floats  # windows in which the device is loaded: 1, else 0
    slow: Floats  # 1 - clock / highest clock
    hot: Floats  # part of the window that heat holds the clocks down
    capped: Floats  # part of the window that the power limit does
    braked: Floats  # part of the window that a power brake does


def clock_reduction(testimony: TelemetryRecording) -> Measure | Missing:
    """While loaded: by how much the clock stays below the highest one, mean (share)."""
    return _while_loaded(testimony, _clocks(testimony).slow, "sm_clock")


def heat_throttled(testimony: TelemetryRecording) -> Measure | Missing:
    """While loaded: part of the time that heat holds the clocks down (share)."""
    return _while_loaded(testimony, _clocks(testimony).hot, "clock_event_reasons")


def power_capped(testimony: TelemetryRecording) -> Measure | Missing:
    """While loaded: part of the time that the power limit holds the clocks down (share)."""
    return _while_loaded(testimony, _clocks(testimony).capped, "clock_event_reasons")


def power_braked(testimony: TelemetryRecording) -> Measure | Missing:
    """While loaded: part of the time that an external power brake holds the clocks down (share)."""
    return _while_loaded(testimony, _clocks(testimony).braked, "clock_event_reasons")


def loaded_power_share(testimony: TelemetryRecording) -> Measure | Missing:
    """While loaded: power of the limit in force (share)."""
    power, limit = (testimony.windows.mean(name, of_device=True) for name in ("power", "power_limit"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return _while_loaded(testimony, power / limit, "power")


def power_limit_of_default(testimony: TelemetryRecording) -> Measure | Missing:
    """The power limit in force, of the one that the board was shipped with (share)."""
    limit, default = (testimony.of_series(name, "W", True) for name in ("power_limit", "power_limit_default"))
    if isinstance(limit, Missing) or isinstance(default, Missing) or default.value <= 0:
        return Missing(testimony.why_missing("power_limit_default"))
    return Measure(limit.value / default.value, "share", "", limit.count, EVIDENCE_SOURCE)


def highest_temperature(testimony: TelemetryRecording) -> Measure | Missing:
    """The highest temperature while judged (words)."""
    _, values = testimony.windows.readings("temperature", of_device=True)
    if not len(values):
        return Missing(testimony.why_missing("temperature"))
    return text_measure(f"{values.max():.0f} °C", len(values))


def time_lost_to_heat(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the judged time, what the device's own work would be shorter by at the highest clock, where heat slows it."""
    return _lost(testimony, _clocks(testimony).hot)


def time_lost_to_power(testimony: TelemetryRecording) -> Measure | Missing:
    """The same where the power limit, or a power brake, slows it."""
    clocks = _clocks(testimony)
    return _lost(testimony, np.fmax(clocks.capped, clocks.braked))


def throttling_loss_by_window(testimony: TelemetryRecording) -> Floats:
    """The share of each window that heat or a power brake cost; a power cap counts over the whole run only."""
    clocks = _clocks(testimony)
    return np.nan_to_num(_work(testimony, clocks) * clocks.slow * np.minimum(np.fmax(clocks.hot, clocks.braked), 1.0))


def _lost(testimony: TelemetryRecording, when: Floats) -> Measure | Missing:
    clocks = _clocks(testimony)
    lost = _work(testimony, clocks) * clocks.slow * np.minimum(when, 1.0)
    return testimony.mean(lost, "share", testimony.why_missing("sm_clock"))


def _work(testimony: TelemetryRecording, clocks: _Clocks) -> Floats:
    return np.asarray(np.nan_to_num(1.0 - testimony.accounts.idle) * clocks.loaded)


def _while_loaded(testimony: TelemetryRecording, values: Floats, name: str) -> Measure | Missing:
    loaded = _clocks(testimony).loaded > 0
    if not loaded.any():
        return Missing("the device was never busy for half of the time, and idle clocks say nothing")
    return testimony.mean(np.where(loaded, values, np.nan), "share", testimony.why_missing(name))


def _clocks(testimony: TelemetryRecording) -> _Clocks:
    windows = testimony.windows
    loaded = (np.nan_to_num(windows.mean("gpu_utilisation", of_device=True)) >= LOADED_FOR_CLOCKS).astype(float)
    clock, highest = (windows.mean(name, of_device=True) for name in ("sm_clock", "sm_clock_max"))
    with np.errstate(invalid="ignore", divide="ignore"):
        slow = np.clip(1.0 - clock / highest, 0.0, 1.0)
    length = float(windows.grid.width)
    hot = np.fmax(_part_with(testimony, HEAT), windows.growth("thermal_capped_total", of_device=True) / length)
    capped = np.fmax(
        _part_with(testimony, SOFTWARE_POWER_CAP), windows.growth("power_capped_total", of_device=True) / length
    )
    return _Clocks(loaded, slow, hot, capped, _part_with(testimony, POWER_BRAKE))


def _part_with(testimony: TelemetryRecording, mask: int) -> Floats:
    """For each window the part of its readings, those of an idle device left out, with one of these reasons set."""
    when, values = testimony.windows.readings("clock_event_reasons", of_device=True)
    reasons = values.astype(np.int64)
    counts = (reasons & IDLE) == 0
    window = testimony.windows.grid.window_of(when)
    seen = np.bincount(window, counts.astype(float), len(testimony.windows))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.bincount(window, counts & ((reasons & mask) != 0), len(testimony.windows)) / seen)
