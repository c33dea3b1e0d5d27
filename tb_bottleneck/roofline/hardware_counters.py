"""Reads the hardware counters in a trace, such as the bandwidth in use, for the whole device and for each kernel.

A counter is sampled at a fixed interval, and each value is the mean since the previous sample. A kernel is often
shorter than the interval. Therefore, the use of the device by a kernel is the mean over all runs of kernels with the
same name. The value of an interval is attributed only to the part of the interval in which the device is busy.
"""

import re
from enum import Enum

import numpy as np

from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.table import Floats, Ints
from tb_bottleneck.trace.trace import Trace

LEAST_BUSY = 0.05
"""Intervals in which the device is busy for a smaller share of the time are ignored, because the value is mostly noise.
A choice."""
LEAST_SAMPLES = 5
"""If all kernels with one name together take less time than this number of intervals, their use is unknown. A
choice."""


class Signal(Enum):
    """A hardware counter. The value is a regular expression that matches the counter's name in torch
    (torch/profiler/_cuspy/trace.py) or in CUPTI. Counters in percent are converted to shares from 0 to 1.
    """

    SM_ACTIVE = r"SM Active \(%\)|sm__cycles_active\.avg\.pct_of_peak.*"
    TENSOR_ACTIVE = r"sm__(?:inst_executed_)?pipe_tensor.*\.pct_of_peak.*"
    BANDWIDTH = r"(?:DRAM|HBM) BW \(%\)|(?:gpu__)?dram__?throughput\.avg\.pct_of_peak.*"
    CLOCK = r"SM Clock \(MHz\)"
    POWER = r"Power \(W\)"
    TEMPERATURE = r"Temperature \(C\)"

    @property
    def unit(self) -> float:
        """Factor by which recorded values are multiplied: 0.01 for counters in percent, else 1."""
        return 0.01 if "%" in self.value else 1.0


class Samples(Record, frozen=True):
    """Samples of one counter of the trace's device. `values[i]` is the mean from `edges[i]` to `edges[i + 1]` (ns)."""

    edges: Ints  # one more than the values
    values: Floats

    def mean(self, begin: Ints | int, end: Ints | int) -> Floats:
        """Returns the mean value over each interval [begin, end), in ns; NaN if no value is known in the interval."""
        length = np.diff(self.edges)
        known = np.concatenate(([0], np.cumsum(np.where(np.isfinite(self.values), length, 0))))
        total = np.concatenate(([0.0], np.cumsum(np.where(np.isfinite(self.values), self.values * length, 0.0))))
        covered, value = (
            np.interp(end, self.edges, sums) - np.interp(begin, self.edges, sums) for sums in (known, total)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(covered > 0, value / covered, np.nan))


def samples_of(trace: Trace, signal: Signal) -> Samples | None:
    """Returns the samples of the counter `signal` on the trace's device; None if there are fewer than two samples."""
    named = [at for at, name in enumerate(trace.counter_names) if re.fullmatch(signal.value, name)]
    rows = np.flatnonzero((trace.counters.device == trace.device_index) & np.isin(trace.counters.name, named[:1]))
    time, first = np.unique(trace.counters.time[rows], return_index=True)
    if len(time) < 2:
        return None
    values = trace.counters.value[rows][first] * signal.unit
    if signal.unit != 1.0:
        values = np.clip(values, 0.0, 1.0)
    return Samples(np.concatenate(([2 * time[0] - time[1]], time)), values)


def while_busy(trace: Trace, samples: Samples) -> Samples:
    """Returns the samples divided by the fraction of each interval in which the device was busy. The values are at most
    1, and NaN where this fraction is below LEAST_BUSY."""
    ops = trace.device_ops
    busy = union(ops.start, ops.end).covered(samples.edges[:-1], samples.edges[1:]) / np.diff(samples.edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(busy >= LEAST_BUSY, np.minimum(samples.values / busy, 1.0), np.nan)
    return Samples(samples.edges, values)


def use_by_kernel(trace: Trace, signal: Signal) -> Floats | None:
    """Returns for each device operation the mean value of the counter while operations with the same name run.

    NaN for operations for which the value is not known. None if the counter was not recorded.
    """
    found = samples_of(trace, signal)
    if found is None:
        return None
    ops, samples = trace.device_ops, while_busy(trace, found)
    use = samples.mean(ops.start, ops.end)
    length = np.where(np.isfinite(use), ops.end - ops.start, 0).astype(np.float64)
    _, group = np.unique(ops.name, return_inverse=True)
    spent = np.bincount(group, weights=length)
    enough = spent >= LEAST_SAMPLES * np.median(np.diff(samples.edges))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(group, weights=np.nan_to_num(use) * length) / spent
    return np.asarray(np.where(enough, mean, np.nan)[group])
