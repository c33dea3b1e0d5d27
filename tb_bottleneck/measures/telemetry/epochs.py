"""Measures of the starts of epochs: the wait for the first batch of each iterator of the loader."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import OFF_CADENCE
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.telemetry.input_pipeline import configured_workers
from tb_bottleneck.measures.telemetry.step_phases import STEADY
from tb_bottleneck.order_statistics import percentile
from tb_bottleneck.telemetry.bounded_columns import Floats, Times

BEYOND_ROUNDS = 1.5
"""With too few workers the long waits come once per round of workers. Waits that come later than this many rounds have
another reason."""


def epoch_start_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the loader's wait that is for the first batches of epochs (share of the wait).

    In recordings without that time, epochs are recognised by long waits that come at a steady distance, of more steps
    than the loader has workers.
    """
    total = float(np.nansum(recording.windows.total("loader_wait")))
    if total <= 0:
        return Missing(recording.why_missing("loader_wait"))
    begun = _epochs_begun(recording)
    if begun is not None:
        return Measure(min(begun[1] / total, 1.0), "share", "loader time", max(len(begun[0]), 1), EVIDENCE_SOURCE)
    number, beyond = _long_waits(recording)
    distance = np.diff(number)
    if len(distance) < 2:
        return Missing("too few long waits to recognise epochs")
    usual = float(np.median(distance))
    steady = float(np.median(np.abs(distance - usual))) <= STEADY * usual
    if not steady or usual <= BEYOND_ROUNDS * configured_workers(recording):
        return Measure(0.0, "share", "loader time", len(number), EVIDENCE_SOURCE)
    return Measure(min(float(beyond.sum()) / total, 1.0), "share", "loader time", len(number), EVIDENCE_SOURCE)


def first_batch_time(recording: TelemetryRecording) -> Measure | Missing:
    """Median time from the start of an epoch to its first batch (ns)."""
    _, longest, _ = recording.windows.highest("epoch_start")
    starts = longest[np.nan_to_num(longest) > 0]
    if not len(starts):
        return Missing("no epoch begins in the judged steps")
    return Measure(float(np.median(starts)), "ns", "epoch", len(starts), EVIDENCE_SOURCE)


def epoch_length(recording: TelemetryRecording) -> Measure | Missing:
    """Steps of an epoch; of recordings that do not show it, from one long wait for a batch to the next (count)."""
    begun = _epochs_begun(recording)
    distance = np.diff(_long_waits(recording)[0] if begun is None else begun[0])
    if len(distance) < 1 + (begun is None):
        return Missing("too few long waits to recognise epochs")
    return Measure(float(np.median(distance)), "count", "epoch", len(distance) + 1, EVIDENCE_SOURCE)


def time_to_first_step(recording: TelemetryRecording) -> Measure | Missing:
    """Time from the first reading of the monitor to the end of the first step (ns): imports, workers, first batch."""
    telemetry = recording.telemetry
    began = min((int(rows.end[0]) for rows in telemetry.series.values() if len(rows)), default=None)
    if began is None or not len(telemetry.steps):
        return Missing("no reading before the first step was recorded")
    return Measure(float(max(int(telemetry.steps.end[0]) - began, 0)), "ns", "", source=EVIDENCE_SOURCE)


def _epochs_begun(recording: TelemetryRecording) -> tuple[Times, float] | None:
    """Returns the steps that begin an epoch, and their waits in ns; None if that was not recorded."""
    number, longest, mean = recording.windows.highest("epoch_start")
    if np.isnan(longest).all():
        return None
    begins = np.nan_to_num(longest) > 0
    return number[begins], float((mean * recording.windows.counts_of_steps)[begins].sum())


def _long_waits(recording: TelemetryRecording) -> tuple[Times, Floats]:
    """Returns the numbers of the steps that wait much longer than usual for a batch, and by how many ns."""
    number, longest, mean = recording.windows.highest("loader_wait")
    is_known = ~np.isnan(longest)
    if not is_known.any():
        return number[:0], longest[:0]
    usual = percentile(mean[is_known], 50, recording.windows.counts_of_steps[is_known])
    long = is_known & (longest > OFF_CADENCE * usual)
    return number[long], longest[long] - usual
