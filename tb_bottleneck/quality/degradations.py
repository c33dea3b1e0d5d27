"""Defects of a recording that can be judged, including defects that only its account (time per regime) shows.

Defects have codes and figures, but no texts.
"""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import LONGEST_DEVICE_PAUSE_NS
from tb_bottleneck.attribution.profiler_time.logged_steps import logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_backward, has_training
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.kind_of_work import only_operator
from tb_bottleneck.measures.profiler_overhead import atypical_ratio, profiler_overhead, unprofiled_step
from tb_bottleneck.measures.trace.uneven_steps import first_runs_of, first_runs_recur
from tb_bottleneck.measures.trace.window_rows import host_rows
from tb_bottleneck.quality.trace_defects import Defect, defects_of, profiler_setup
from tb_bottleneck.trace.kinds import Kind

# From this share on, the idle time would be the conclusion about the run: traceml's warning level for overheads
# (diagnostics/step_time/policy.py).
UNRECORDED_IDLE_SHARE = 0.10
# Up to this share, the work of the device outweighs the unknown time, and the fixes of this work do not depend on the
# unknown time. From this share on, the unknown time alone would be critical (bottlenecks/judge.py).
FATAL_IDLE_SHARE = 0.20


def host_not_recorded_defect(recording: Recording) -> Defect | None:
    """Returns the defect `host_not_recorded`, or None if the host was recorded, or if the device has little idle time.

    In a recording without host activity, nothing explains why the device had no work. The defect is fatal if the idle
    time exceeds FATAL_IDLE_SHARE of the window.
    """
    if not recording.on_device or recording.host.recorded:
        return None
    gaps = recording.gaps
    unexplained = gaps.queued[(gaps.thread < 0) & (gaps.queued >= LONGEST_DEVICE_PAUSE_NS)]
    idle = int(gaps.by_activity.of(Activity.OTHER).sum() + unexplained.sum())
    share = idle / recording.account.window
    if share <= UNRECORDED_IDLE_SHARE:
        return None
    return Defect("host_not_recorded", share > FATAL_IDLE_SHARE, {"share": share, "pause": idle})


# A recording with a larger share of first runs (code that runs for the first time) shows a start-up and not the
# training, unless first runs recur.
WARMUP_SHARE = 0.25
# In a recording without steps, a single pause with a larger share of the window is a start-up.
LONE_PAUSE_SHARE = 0.50


def warmup_defect(recording: Recording) -> Defect | None:
    """Returns the defect `warmup`, which is fatal, or None if the recording shows steady behaviour.

    A recording has this defect if first runs (compiling, loading of code) take more than WARMUP_SHARE of the window and
    do not occur again, or if it has no steps and a single pause takes more than LONE_PAUSE_SHARE of the window.
    """
    window = recording.account.window
    start = int(first_runs_of(recording)[2].sum())
    if start / window > WARMUP_SHARE and not first_runs_recur(recording, WARMUP_SHARE):
        return Defect("warmup", True, {"share": start / window, "pause": start})
    if not recording.on_device:
        return None
    # A pause for the next batch, or for an interruption, recurs.
    recurring = recording.gaps.by_activity.total(Activity.LOAD_BATCH, Activity.INTERRUPT)
    longest = int(np.max(recording.gaps.end - recording.gaps.begin - recurring, initial=0))
    if recording.steps.basis == "whole" and longest / window > LONE_PAUSE_SHARE:
        return Defect("warmup", True, {"share": longest / window, "pause": longest})
    return None


# The regimes with time that the profiler inflates: recording slows the host, and nothing else.
INFLATED_BY_PROFILER = (Regime.LAUNCH, Regime.HOST, Regime.SYNC, Regime.INPUT)
# With more measured overhead than this, the recorded times of the host are not reliable.
OVERHEAD_SHARE = 0.10
# The share of the window from which host time, or idle time, matters: traceml's warning level for overheads.
MIN_HOST_SHARE = 0.10
# Steps with a larger share of compiling, tuning or loading of code are not steady (the method's rule for such steps).
FIRST_RUNS_SHARE = 0.05
# With a larger share of device operations without a launching call, the idle time before them has no owner. In public
# recordings that were not cut or sampled, 0 to 8 % of the operations have no launching call.
LOST_LAUNCHES_SHARE = 0.10
# In a recording without steps, the host's work before the window is reported if it takes a larger share of the
# recording: as for LONE_PAUSE_SHARE, nothing shows how often it occurs.
LATE_START_SHARE = 0.50
# With a larger share of the device's operations launched by an optimizer, nothing else of a step was recorded.
OPTIMIZER_ALONE = 0.95
# Marks of two steps may touch; if they overlap by more than this, they do not show where a step ends.
OVERLAP_NS = 100_000


def degradations_of(recording: Recording) -> Iterator[Defect]:
    """Yields the defects that are not fatal: those of the file, and those that show only after each moment of the
    window has been attributed to a regime.

    The defect `profiler_inflated` is left out if the overhead of the profiler was measured. It is also left out if the
    host takes less than MIN_HOST_SHARE of the window, because the profiler then hardly lengthens the window.
    """
    overhead_measured = not isinstance(unprofiled_step(recording), Missing)
    host = sum(recording.account.share(regime) for regime in INFLATED_BY_PROFILER)
    for defect in defects_of(recording.trace, recording.steps):
        if defect.code == "few_steps" and recording.steps.basis == "whole":
            yield Defect("not_cut_into_steps", False, _purpose(recording))
        elif defect.code != "profiler_inflated" or (not overhead_measured and host >= MIN_HOST_SHARE):
            yield defect
    overhead = overhead_defect(recording)
    if overhead is not None:
        yield overhead
    yield from _atypical(recording)
    if _optimizer_alone(recording):
        yield Defect("optimizer_alone", False)
    operator = only_operator(recording)
    if isinstance(operator, Measure):
        yield Defect("one_operator", False, {"operator": operator.text, "calls": operator.count})
    overlapping = _overlapping_steps(recording)
    if overlapping:
        yield Defect("overlapping_steps", False, {"steps": overlapping})
    if recording.on_device:
        yield from _late_start(recording)
        yield from _unlinked(recording)
    start = int(first_runs_of(recording)[2].sum())
    share = start / recording.account.window
    if share > FIRST_RUNS_SHARE and not first_runs_recur(recording, FIRST_RUNS_SHARE):
        yield Defect("starting", False, {"share": share, "pause": start})


def _atypical(recording: Recording) -> Iterator[Defect]:
    """Yields the defect `atypical_steps` if the recorded steps are longer or shorter than the steps before the
    recording, for a reason other than the profiler."""
    logged, ratio = logged_unprofiled(recording), atypical_ratio(recording)
    if logged is not None and ratio is not None:
        recorded = logged.average(recording.steps.durations)
        yield Defect("atypical_steps", False, {"recorded": recorded, "pause": logged.step})


def _optimizer_alone(recording: Recording) -> bool:
    """Returns True if at least OPTIMIZER_ALONE of the window's launched device operations are launched by an optimizer
    step, and no backward pass was recorded."""
    trace, ops = recording.trace, recording.trace.device_ops
    own = ops.launched & recording.in_window(ops.start)
    if not own.any() or has_backward(trace):
        return False
    return bool(recording.optimizer_steps.contains(trace.calls.start[ops.call[own]]).mean() >= OPTIMIZER_ALONE)


def _late_start(recording: Recording) -> Iterator[Defect]:
    """Yields the defect `late_start` if a recording without steps shows that the host worked for long before the
    window."""
    trace, steps = recording.trace, recording.steps
    rows = trace.rows(Kind.CPU_OP, Kind.ANNOTATION, Kind.CALL)
    if steps.basis != "whole" or not len(rows):
        return
    before = steps.begin - int(trace.events.start[rows[0]])
    if before > LATE_START_SHARE * (before + recording.account.window):
        yield Defect("late_start", False, {"pause": before} | _purpose(recording))


def _purpose(recording: Recording) -> dict[str, float | str]:
    """Returns {"kind": "inference"} for a recording without training, otherwise {}. The text of the fix depends on this
    kind."""
    return {} if has_training(recording.trace) else {"kind": "inference"}


def _unlinked(recording: Recording) -> Iterator[Defect]:
    """Yields the defect of device operations for which no launching call was recorded. The reason for the idle time
    before these operations is not known."""
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


def stacks_defects(recording: Recording) -> Iterator[Defect]:
    """Yields the defect `stacks_not_recorded` if the recording has no Python frames. Without them, no line of the
    program can be named."""
    trace = recording.trace
    if not trace.header.stacks_recorded and not len(trace.rows(Kind.PYTHON)):
        yield Defect("stacks_not_recorded", False)


def _overlapping_steps(recording: Recording) -> int:
    """Returns the number of steps (`ProfilerStep` annotations) that begin more than OVERLAP_NS before the end of an
    earlier step."""
    rows = host_rows(recording, lambda name: name.startswith("ProfilerStep"), Kind.ANNOTATION, Kind.CPU_OP)
    events = recording.trace.events
    reach = np.maximum.accumulate(events.end[rows])
    return int((events.start[rows][1:] < reach[:-1] - OVERLAP_NS).sum())


def overhead_defect(recording: Recording) -> Defect | None:
    """Returns the defect `profiler_overhead`, or None if the overhead is not known, or is at most OVERHEAD_SHARE."""
    overhead, without = profiler_overhead(recording), unprofiled_step(recording)
    if isinstance(overhead, Missing) or isinstance(without, Missing) or overhead.value <= OVERHEAD_SHARE:
        return None
    facts: dict[str, float | str] = {
        "share": overhead.value,
        "pause": without.value,
        "kind": profiler_setup(recording.trace),
    }
    return Defect("profiler_overhead", False, facts)
