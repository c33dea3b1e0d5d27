"""The stages of making a batch, as the monitor sampled them in the loader's workers."""

import math

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.input_stages import sampled_work, stage_text
from tb_bottleneck.units import share_text

MOST_PER_CORE = 8
"""Workers per core up to which a number of them is worth telling: workers that wait can share a core. A choice."""


def slowest_stage(recording: TelemetryRecording) -> Measure | Missing:
    """The stage with the most time of making a batch, and its share (text)."""
    work = sampled_work(recording.facts)
    if isinstance(work, Missing):
        return work
    return text_measure(f"{stage_text(work.stages[0])}, {share_text(work.stages[0].ns / max(work.ns, 1.0))}")


def time_per_batch(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which one worker makes a batch (ns)."""
    work = sampled_work(recording.facts)
    if isinstance(work, Missing) or work.batch_ns is None:
        return work if isinstance(work, Missing) else Missing("the number of batches is not known")
    return Measure(work.batch_ns, "ns", "batch", int(work.batches), EVIDENCE_SOURCE)


def workers_ahead(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the workers' time in which they have no batch to make, because their queue is full."""
    work = sampled_work(recording.facts)
    if isinstance(work, Missing) or work.waiting_share is None:
        return work if isinstance(work, Missing) else Missing("the time without a batch was not sampled")
    return Measure(work.waiting_share, "share", "worker time", int(work.batches), EVIDENCE_SOURCE)


def worker_processes_needed(recording: TelemetryRecording) -> Measure | Missing:
    """Workers that would make batches as fast as the rest of the step needs them (count), if cores can run so many."""
    needed, cores = processes_that_keep_up(recording), recording.fact("cores")
    if isinstance(needed, Measure) and cores and needed.value > MOST_PER_CORE * cores:
        return Missing("more workers than this machine can run")
    return needed


def processes_that_keep_up(recording: TelemetryRecording) -> Measure | Missing:
    """The same with any number of cores (count).

    Time in which one worker makes a batch / time of the step without waiting for it, rounded up.
    """
    batch, wall = time_per_batch(recording), recording.per_step("wall", "ns")
    wait = recording.per_step("loader_wait", "ns")
    if isinstance(batch, Missing) or isinstance(wall, Missing) or isinstance(wait, Missing):
        return batch if isinstance(batch, Missing) else Missing(recording.why_missing("loader_wait"))
    needed = math.ceil(batch.value / max(wall.value - wait.value, 1.0))
    return Measure(float(max(needed, 1)), "count", "process", batch.count, EVIDENCE_SOURCE)
