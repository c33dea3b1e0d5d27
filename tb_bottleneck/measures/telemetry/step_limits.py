"""How much the steps of a CPU run can gain at most without one of their costs.

A loader, a writer or an evaluation also takes cores, caches and the interpreter's lock from the rest of a step, so
without it the rest becomes shorter, too. Its fastest tenth over the steps shows how short it can be, which is a bound
unless all steps are slowed equally. Each measure is a share of the judged time: 1 - that rest / the mean step. On a
device, the rest is the device's own work, which takes no cores.
"""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.fast_steps import BESIDE_WRITER, FAST
from tb_bottleneck.order_statistics import percentile


def most_without_loader(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the time that is saved at most without the wait for batches."""
    return _most_without(recording, "loader_wait")


def most_without_checkpoints(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the time that is saved at most without checkpoints."""
    return _most_without(recording, "checkpoint")


def most_without_logging(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the time that is saved at most without log writes."""
    return _most_without(recording, "logging", BESIDE_WRITER)


def most_without_collections(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the time that is saved at most without garbage collections."""
    return _most_without(recording, "garbage_collection")


def most_without_evaluation(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the time that is saved at most without evaluations."""
    return _most_without(recording, "evaluation")


def _most_without(recording: TelemetryRecording, column: str, rest_remains: float = 1.0) -> Measure | Missing:
    windows = recording.windows
    cost, wall, count = windows.highest(column)[2], windows.highest("wall")[2], windows.counts_of_steps
    if recording.on_device or np.isnan(cost).all():
        return Missing("the run has a device" if recording.on_device else recording.why_missing(column))
    known = ~np.isnan(wall)
    rest = np.maximum(wall - np.nan_to_num(cost), 0.0)[known]
    mean = float(np.average(wall[known], weights=count[known]))
    fast = percentile(rest, FAST, count[known]) * rest_remains
    return Measure(min(max(1 - fast / mean, 0.0), 1.0), "share", "step", int(count.sum()), EVIDENCE_SOURCE)
