"""Measures of the hardware counters in a trace: multiprocessors and bandwidth in use, clock, power."""

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.roofline.hardware_counters import Samples, Signal, samples_of

_NOT_RECORDED = Missing(
    "the trace has no counters of the device: torch 2.15 writes them with torch.profiler.PerformanceMetricsConfig"
)
_LOADED = 0.5
"""A sample of the clock counts if the device works for at least this part of the sample's time, as for clocks of
telemetry (measures/telemetry/device.py). An idle device lowers its clock."""


def sm_active(recording: Recording) -> Measure | Missing:
    """Measured share of the window in which a multiprocessor has work: the mean over all multiprocessors."""
    return _mean(recording, Signal.SM_ACTIVE, "share")


def bandwidth_in_use(recording: Recording) -> Measure | Missing:
    """Measured mean memory bandwidth of the window (share of the device's peak)."""
    return _mean(recording, Signal.BANDWIDTH, "share")


def mean_power(recording: Recording) -> Measure | Missing:
    """Mean power of the board in the window, in W."""
    return _mean(recording, Signal.POWER, "W")


def hottest(recording: Recording) -> Measure | Missing:
    """The highest temperature of the device in the window, as text."""
    samples = _inside(recording, Signal.TEMPERATURE)
    return _NOT_RECORDED if samples is None else text_measure(f"{samples.values.max():.0f} °C", len(samples.values))


def clock_below_highest(recording: Recording) -> Measure | Missing:
    """How far the clock is below the highest clock of the recording while the device works: the mean of
    1 - clock / highest clock (share of the highest clock)."""
    samples = samples_of(recording.trace, Signal.CLOCK)
    inside = _inside(recording, Signal.CLOCK)
    if samples is None or inside is None or not samples.values.max() > 0:
        return _NOT_RECORDED
    ops = recording.trace.device_ops
    busy = union(ops.start, ops.end).covered(inside.edges[:-1], inside.edges[1:]) / np.diff(inside.edges)
    loaded = busy >= _LOADED
    if not loaded.any():
        return Missing("the device was never busy for half of the time between two samples of its clock")
    distance = 1 - inside.values[loaded] / samples.values.max()
    return Measure(float(distance.mean()), "share", "samples under load", int(loaded.sum()))


def _mean(recording: Recording, signal: Signal, unit: str) -> Measure | Missing:
    """Returns the mean of the counter `signal` over the window as a measure in `unit`."""
    samples = samples_of(recording.trace, signal)
    if samples is None:
        return _NOT_RECORDED
    value = float(samples.mean(recording.steps.begin, recording.steps.end))
    return Measure(value, unit, "window", len(samples.values)) if np.isfinite(value) else _NOT_RECORDED


def _inside(recording: Recording, signal: Signal) -> Samples | None:
    """Returns the samples of the counter `signal` that end in the window; None if there are none."""
    samples = samples_of(recording.trace, signal)
    if samples is None:
        return None
    rows = np.flatnonzero((samples.edges[1:] > recording.steps.begin) & (samples.edges[1:] <= recording.steps.end))
    return Samples(samples.edges[rows[0] : rows[-1] + 2], samples.values[rows]) if len(rows) else None
