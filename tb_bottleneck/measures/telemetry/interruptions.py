"""Measures of what interrupts a training: checkpoints, logging, garbage collections and evaluation, per step."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import INTERRUPTIONS
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.regime import Regime


def checkpoint_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time in writing checkpoints per step (ns)."""
    return recording.per_step("checkpoint", "ns")


def logging_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time in TensorBoard's writer per step (ns)."""
    return recording.per_step("logging", "ns")


def collection_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time in Python's garbage collector per step (ns)."""
    return recording.per_step("garbage_collection", "ns")


def evaluation_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time in evaluation per step (ns)."""
    return recording.per_step("evaluation", "ns")


def steps_with_checkpoint(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the steps that write a checkpoint (share)."""
    return _steps_with(recording, "checkpoint")


def steps_with_logging(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the steps that call TensorBoard's writer (share)."""
    return _steps_with(recording, "logging")


def recorded_interruptions(recording: TelemetryRecording) -> Measure | Missing:
    """Time of interruptions of known kinds (share of the judged time), at most that of the regime."""
    parts = [recording.per_step(name, "ns") for name in INTERRUPTIONS]
    known = [part.value for part in parts if isinstance(part, Measure)]
    wall = recording.per_step("wall", "ns")
    if not known or isinstance(wall, Missing):
        return Missing(recording.why_missing("checkpoint"))
    share = min(sum(known) / wall.value, recording.account.share(Regime.INTERRUPTION))
    return Measure(share, "share", "window", wall.count, EVIDENCE_SOURCE)


def _steps_with(recording: TelemetryRecording, column: str) -> Measure | Missing:
    """In a row of several steps, each of those with it is taken to last as long as in the rows of one step."""
    _, longest, mean = recording.windows.highest(column)
    known = ~np.isnan(longest)
    if not known.any():
        return Missing(recording.why_missing(column))
    count, longest, mean = recording.windows.counts_of_steps[known], longest[known], mean[known]
    alone = longest[(count == 1) & (longest > 0)]
    usual = float(np.median(alone if len(alone) else longest))
    steps = np.where(count == 1, longest > 0, np.minimum(mean * count / usual, count) if usual > 0 else 0)
    return Measure(float(steps.sum() / count.sum()), "share", "", int(count.sum()), EVIDENCE_SOURCE)
