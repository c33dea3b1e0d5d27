"""What weakens a recording that can be judged, seen beside what it says: codes and figures, no words."""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.first_runs import first_runs_of, first_runs_recur
from tb_bottleneck.measures.trace.profiler_overhead import profiler_overhead, unprofiled_step
from tb_bottleneck.measures.trace.window import host_rows
from tb_bottleneck.quality.trace_defects import Defect, defects_of
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.kinds import Kind

# The regimes whose time the host spends: recording slows the host, and nothing else.
INFLATED_BY_PROFILER = (Regime.LAUNCH, Regime.HOST, Regime.SYNC, Regime.INPUT)
# From which measured overhead on times of the host are not taken at face value.
OVERHEAD_SHARE = 0.10
# From here on they own enough for the profiler's part of them to matter: traceml's warning level for overheads.
MIN_HOST_SHARE = 0.10
# Steps with more compiling, tuning or loading of code than this are not steady (the method's rule for such steps).
FIRST_RUNS_SHARE = 0.05
# More device operations without a launching call than this, and idle time before them is nobody's: recordings of public
# collections that were not cut or sampled have none to 8 % of them.
LOST_LAUNCHES_SHARE = 0.10
# Marks of two steps may touch; those that reach further into each other do not tell where a step ends.
OVERLAP_NS = 100_000


def degradations_of(recording: Recording) -> Iterator[Defect]:
    """The defects of the file, and those that only its account shows.

    The estimate of the profiler's own cost gives way to the measured one, and is left out where the host's time is too
    small a part of the window for it to matter.
    """
    known = not isinstance(unprofiled_step(recording), Missing)
    host = sum(recording.account.share(regime) for regime in INFLATED_BY_PROFILER)
    for defect in defects_of(recording.trace, recording.steps):
        if defect.code == "few_steps" and recording.steps.basis == "whole":
            yield Defect("not_cut_into_steps", False)
        elif defect.code != "profiler_inflated" or (not known and host >= MIN_HOST_SHARE):
            yield defect
    measured = overhead_defect(recording)
    if measured is not None:
        yield measured
    overlapping = _overlapping_steps(recording)
    if overlapping:
        yield Defect("overlapping_steps", False, {"steps": overlapping})
    if recording.on_device:
        yield from _unlinked(recording)
    start = int(first_runs_of(recording)[2].sum())
    share = start / recording.account.window
    if share > FIRST_RUNS_SHARE and not first_runs_recur(recording, FIRST_RUNS_SHARE):
        yield Defect("starting", False, {"share": share, "pause": start})


def _unlinked(recording: Recording) -> Iterator[Defect]:
    """Device work that no recorded call put there: why it came late is then not known."""
    idle = recording.idle.total() / recording.account.window
    if not len(recording.trace.calls):
        if idle >= MIN_HOST_SHARE:
            yield Defect("calls_not_recorded", False, {"share": idle})
        return
    ops, steps = recording.trace.device_ops, recording.steps
    inside = (ops.end > steps.begin) & (ops.start < steps.end)
    share = float((~ops.launched[inside]).mean()) if inside.any() else 0.0
    if share > LOST_LAUNCHES_SHARE and idle >= MIN_HOST_SHARE:
        yield Defect("launches_lost", False, {"share": share})


def _overlapping_steps(recording: Recording) -> int:
    """Marks of steps that begin before the one before them has ended."""
    rows = host_rows(recording, lambda name: name.startswith("ProfilerStep"), Kind.ANNOTATION, Kind.CPU_OP)
    events = recording.trace.events
    reach = np.maximum.accumulate(events.end[rows])
    return int((events.start[rows][1:] < reach[:-1] - OVERLAP_NS).sum())


def overhead_defect(recording: Recording) -> Defect | None:
    """The defect `profiler_overhead`, None where it is not known or does not matter."""
    overhead, without = profiler_overhead(recording), unprofiled_step(recording)
    if isinstance(overhead, Missing) or isinstance(without, Missing) or overhead.value <= OVERHEAD_SHARE:
        return None
    return Defect("profiler_overhead", False, {"share": overhead.value, "pause": without.value})
