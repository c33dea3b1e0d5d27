"""Measures of what interrupts a training, per step, and of the starts of epochs.

Interruptions are checkpoints, logging, garbage collections and evaluation. At the start of an epoch, the loader may
start new worker processes.
"""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import INTERRUPTIONS, OFF_CADENCE
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.pipeline import configured_workers
from tb_bottleneck.measures.telemetry.host import STEADY
from tb_bottleneck.telemetry.bounded_columns import Floats, Times


def checkpoint_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step spent writing checkpoints (ns)."""
    return recording.per_step("checkpoint", "ns")


def logging_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step spent in TensorBoard's writer (ns)."""
    return recording.per_step("logging", "ns")


def collection_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step spent in Python's garbage collector (ns)."""
    return recording.per_step("garbage_collection", "ns")


def evaluation_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step spent in evaluation (ns)."""
    return recording.per_step("evaluation", "ns")


def steps_with_checkpoint(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the steps that write a checkpoint (share)."""
    return _steps_with(recording, "checkpoint")


def steps_with_logging(recording: TelemetryRecording) -> Measure | Missing:
    """Part of the steps that call TensorBoard's writer (share)."""
    return _steps_with(recording, "logging")


def recorded_interruptions(recording: TelemetryRecording) -> Measure | Missing:
    """Time of interruptions of the kinds that the monitor times (share of the judged time). The result is at most the
    share of the regime `interruption`."""
    parts = [recording.per_step(name, "ns") for name in INTERRUPTIONS]
    known = [part.value for part in parts if isinstance(part, Measure)]
    wall = recording.per_step("wall", "ns")
    if not known or isinstance(wall, Missing):
        return Missing(recording.why_missing("checkpoint"))
    share = min(sum(known) / wall.value, recording.account.share(Regime.INTERRUPTION))
    return Measure(share, "share", "window", wall.count, EVIDENCE_SOURCE)


def _steps_with(recording: TelemetryRecording, column: str) -> Measure | Missing:
    """Returns the share of the steps in which the time in `column` is not 0.

    A row can stand for several steps and then has only the mean of their times. For such a row, the number of affected
    steps is estimated: each affected step is assumed to take the usual time in `column`.
    """
    _, longest, mean = recording.windows.highest(column)
    known = ~np.isnan(longest)
    if not known.any():
        return Missing(recording.why_missing(column))
    count, longest, mean = recording.windows.counts_of_steps[known], longest[known], mean[known]
    alone = longest[(count == 1) & (longest > 0)]
    usual = float(np.median(alone if len(alone) else longest))
    steps = np.where(count == 1, longest > 0, np.minimum(mean * count / usual, count) if usual > 0 else 0)
    return Measure(float(steps.sum() / count.sum()), "share", "", int(count.sum()), EVIDENCE_SOURCE)


NEARLY_ALL, MIN_LONG_STEPS = 0.9, 5
"""There must be at least MIN_LONG_STEPS long steps. A kind of interruption explains them if it is in at least the share
NEARLY_ALL of the long steps, and if at least this share of the steps with the interruption is long. Both numbers are
choices."""


def interruption_of_long_steps(recording: TelemetryRecording) -> Measure | Missing:
    """The kind of interruption that is in nearly all long steps and in nearly no other step, as text: the name of its
    step column.

    The additional time of these steps then belongs to the interruption, although the monitor did not time it. For
    example, the monitor times `torch.save`, but not a copy of the file to a slow disk. Rows that stand for several
    steps are left out.
    """
    windows = recording.windows
    alone = windows.counts_of_steps == 1
    long = np.isin(windows.highest("wall")[0], recording.excess.number) & alone
    if long.sum() < MIN_LONG_STEPS:
        return Missing(f"fewer than {MIN_LONG_STEPS} long steps were recorded one by one")
    for column in INTERRUPTIONS:
        interrupted = (np.nan_to_num(windows.highest(column)[1]) > 0) & alone
        both = int((long & interrupted).sum())
        if both >= NEARLY_ALL * max(long.sum(), interrupted.sum()):
            return text_measure(column, both)
    return Missing("no kind of interruption is in the long steps only")


BEYOND_ROUNDS = 1.5
"""With too few workers, a long wait comes once per round, in which each worker makes one batch. Long waits that are
more than this number of rounds apart have another reason."""


PREFETCH_FACTOR = 2
"""Number of batches per worker in the queue, by default (pytorch docs, torch.utils.data.DataLoader)."""


def epoch_start_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the wait for batches that is at the starts of epochs.

    Three waits count: the wait until the workers of the last epoch have ended; the wait for the first batch; and, until
    the queue is full, the time by which each wait for a batch exceeds the usual wait:

            step of the epoch     last | first            second ...          usual
            wait for a batch        w  | end  start make   w  w  w  w           w

    Without persistent_workers, the workers end with the last batch of an epoch, new workers start with the next epoch,
    and their queues are empty at first. The three waits are the cost of this restart.

    If the starts of epochs were not recorded, long waits count as the starts of epochs if the distances between them
    are steady and longer than BEYOND_ROUNDS steps per worker.
    """
    total = float(np.nansum(recording.windows.total("loader_wait")))
    if total <= 0:
        return Missing(recording.why_missing("loader_wait"))
    begun = _epochs_begun(recording)
    if begun is not None:
        at_starts = _waits_at(begun, recording)
        return Measure(min(at_starts / total, 1.0), "share", "loader time", max(len(begun), 1), EVIDENCE_SOURCE)
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
    """Median steps per epoch (count); if epochs were not recorded, median steps between long waits for a batch."""
    begun = _epochs_begun(recording)
    distance = np.diff(_long_waits(recording)[0] if begun is None else begun)
    if len(distance) < 1 + (begun is None):
        return Missing("too few long waits to recognise epochs")
    return Measure(float(np.median(distance)), "count", "epoch", len(distance) + 1, EVIDENCE_SOURCE)


def steps_per_iterator(recording: TelemetryRecording) -> Measure | Missing:
    """As `epoch_length`. Missing if the loader has a single batch per epoch, or if this is not known."""
    batches = recording.fact("epoch_batches")
    return epoch_length(recording) if batches and batches > 1 else Missing("an epoch may have a single batch")


def time_to_first_step(recording: TelemetryRecording) -> Measure | Missing:
    """Time from the first reading of the monitor to the end of the first recorded step (ns)."""
    telemetry = recording.telemetry
    began = min((int(rows.end[0]) for rows in telemetry.series.values() if len(rows)), default=None)
    if began is None or not len(telemetry.steps):
        return Missing("no reading before the first step was recorded")
    return Measure(float(max(int(telemetry.steps.end[0]) - began, 0)), "ns", "", source=EVIDENCE_SOURCE)


def _epochs_begun(recording: TelemetryRecording) -> Times | None:
    """Returns the numbers of the steps with which epochs begin; None if the starts of epochs were not recorded."""
    number, longest, _ = recording.windows.highest("epoch_start")
    return None if np.isnan(longest).all() else number[np.nan_to_num(longest) > 0]


def _waits_at(begun: Times, recording: TelemetryRecording) -> float:
    """Returns the total time (ns) of the waits at the starts of epochs (see `epoch_start_wait`). `begun` has the
    numbers of the steps with which epochs begin."""
    number, _, mean = recording.windows.highest("loader_wait")
    waits, count = np.nan_to_num(mean), recording.windows.counts_of_steps
    since = number - begun[np.maximum(np.searchsorted(begun, number, side="right") - 1, 0)] if len(begun) else number
    first = np.isin(number, begun)
    queue = PREFETCH_FACTOR * max(configured_workers(recording), 1)
    filling = (since > 0) & (since < queue) & ~first
    others = ~first & ~filling
    usual = percentile(waits[others], 50, count[others]) if others.any() else 0.0
    beyond = np.where(first, waits, np.where(filling, np.maximum(waits - usual, 0.0), 0.0))
    return float((beyond * count).sum())


def _long_waits(recording: TelemetryRecording) -> tuple[Times, Floats]:
    """Returns two arrays about the steps that wait much longer than usual for a batch: their numbers, and the time in
    ns by which each wait exceeds the usual wait."""
    number, longest, mean = recording.windows.highest("loader_wait")
    is_known = ~np.isnan(longest)
    if not is_known.any():
        return number[:0], longest[:0]
    usual = percentile(mean[is_known], 50, recording.windows.counts_of_steps[is_known])
    long = is_known & (longest > OFF_CADENCE * usual)
    return number[long], longest[long] - usual
