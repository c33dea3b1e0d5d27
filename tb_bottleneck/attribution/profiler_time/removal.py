"""Removes the profiler's own time from a recording, so that times, shares and gains are those of the training.

While stacks are recorded, every call of a function costs time, and CPython 3.11 (3.10 a little) runs all bytecode on a
slow path. Every operator costs time, too. The process measures these costs, or they are estimated (costs.py); each cost
is a range. If the step time without the profiler is known, one position is chosen in all ranges, so that the recorded
step minus the profiler's time takes that long. If some steps were recorded without stacks, the same is done for each
part of the step between two operators (step_parts.py); otherwise for a loader that makes its batches in the main
process, the backward pass and the optimizer, if their times without the profiler are known. If even the highest costs
do not suffice, all work was slower while it was recorded (cold caches, other programs), and all of it but waits is
scaled.

On a CPU run, all time of the main thread is corrected. On a device, only the time in which the device waits for Python
outside torch is corrected. Predictions correct the dispatching (replay/host_scale.py).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.profiler_time.costs import Correction, ProfilerCosts, TimeMap, costs_of, time_map
from tb_bottleneck.attribution.profiler_time.host_pieces import LEAST_LEFT, HostPieces, host_pieces
from tb_bottleneck.attribution.profiler_time.logged_steps import LoggedSteps, logged_unprofiled
from tb_bottleneck.attribution.profiler_time.step_parts import step_parts
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import merge, overlapping, subtract
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Floats, Ints
from tb_bottleneck.trace.trace import Trace

# A smaller part of the steps makes no difference to any share that a report shows.
MIN_REMOVED = 0.005
MAX_DIFFERENCE = 0.05
"""Largest difference between a step whose parts were corrected and the step without the profiler. A choice."""
ROUNDS = 20
# In all other time in which a device waits, Python outside torch may run.
_IN_TORCH = (
    Activity.ALLOCATE,
    Activity.SYNCHRONIZE,
    Activity.COPY,
    Activity.INITIALIZE,
    Activity.COMPUTE,
    Activity.DISPATCH,
)


def without_profiler_time(recording: Recording) -> Recording:
    """Returns a recording without the profiler's time. Returns `recording` itself if that time is unknown or small."""
    costs, thread = costs_of(recording.trace), recording.host.main_thread
    unprofiled = logged_unprofiled(recording)
    # Operators cost time on every CPU run. Without any figure of this machine, that is not taken out.
    has_stacks = len(recording.trace.rows(Kind.PYTHON)) > 0
    if costs is None or thread is None or not (has_stacks or costs.measured):
        return recording
    pieces = host_pieces(recording.trace, thread)
    if recording.on_device:
        pieces = _while_waiting(recording, thread, pieces)
    added, solved = pieces.added(costs, 0.0), False
    if unprofiled is not None:
        added, solved = _solved(recording, thread, pieces, costs, unprofiled)
    inside = recording.in_window(pieces.begin)
    removed, waits = (float(np.maximum(time, 0.0)[inside].sum()) for time in (added, -added))
    if removed < MIN_REMOVED * recording.account.window:
        return recording
    mapped = time_map(pieces.begin, pieces.end, added)
    correction = Correction(mapped, costs, solved, removed, waits)
    trace, steps = _mapped_trace(recording.trace, mapped), _mapped_steps(recording.steps, mapped)
    return Recording(trace, steps, correction, recording)


def _while_waiting(recording: Recording, thread: int, pieces: HostPieces) -> HostPieces:
    """Returns the parts of `pieces` (of `thread`) during which the device waits for Python outside torch."""
    activities = recording.host.activities(thread)
    waiting = subtract(recording.idle, merge(*(activities[activity] for activity in _IN_TORCH)))
    own, span = overlapping(pieces.begin, pieces.end, waiting.starts, waiting.ends)
    begin = np.maximum(pieces.begin[own], waiting.starts[span])
    end = np.minimum(pieces.end[own], waiting.ends[span])
    part = (end - begin) / (pieces.end - pieces.begin)[own]
    return HostPieces(begin, end, pieces.is_python[own], pieces.is_wait[own], pieces.edges[:, own] * part)


def _solved(
    recording: Recording, thread: int, pieces: HostPieces, costs: ProfilerCosts, unprofiled: LoggedSteps
) -> tuple[Floats, bool]:
    """Returns the time in ns that the profiler added to each piece, and True if the step without it is right.

    Those parts of the step whose time without the profiler is known are solved one by one, then the rest of the step,
    so that the step takes as long as without the profiler. A part that the costs do not explain, such as one with cold
    caches, is scaled as a whole. If the step waits longer for workers without the profiler, the added time of these
    waits is negative, and the costs have to explain the rest. Without a solution, all pieces are corrected alike: the
    logged time of an optimizer, for example, contains what its closure does.
    """
    steps, durations = recording.steps, recording.steps.durations.astype(np.float64)
    if recording.on_device:  # what else takes longer there is dispatching
        return _part_solved(steps, pieces, costs, durations, unprofiled, unprofiled.step, most=0.0)
    together, solved = _part_solved(steps, pieces, costs, durations, unprofiled, unprofiled.step)
    parts = step_parts(recording, thread, pieces, unprofiled, logged=solved)
    if not parts:
        return together, solved
    added, left, waits_longer = np.zeros(len(pieces.begin)), np.ones(len(pieces.begin), np.bool_), False
    for part in parts:
        left &= ~part.rows
        some, more = pieces.take(part.rows), part.without - unprofiled.average(part.took)
        if more > 0:
            added[part.rows], waits_longer = -_stretched(steps, some, more), True
        else:
            removed, explained = _part_solved(steps, some, costs, part.took, unprofiled, part.without)
            added[part.rows] = removed if explained else _scaled(steps, some, part.took, unprofiled, part.without)
    some, rest = pieces.take(left), durations - _per_step(steps, pieces, added)
    removed, explained = _part_solved(steps, some, costs, rest, unprofiled, unprofiled.step)
    if waits_longer and not explained:
        return together, solved  # the profiler did not take the time that the training did not wait
    added[left] = removed if explained else _scaled(steps, some, rest, unprofiled, unprofiled.step)
    step = _average_without(steps, pieces, durations, unprofiled)(added)
    return (added, True) if abs(step / unprofiled.step - 1) <= MAX_DIFFERENCE else (together, solved)


def _part_solved(
    steps: Steps,
    pieces: HostPieces,
    costs: ProfilerCosts,
    took: Floats,
    unprofiled: LoggedSteps,
    without: float,
    most: float = 2.0,
) -> tuple[Floats, bool]:
    """As _solved, for some pieces: they took `took` ns in each recorded step, and `without` ns without the profiler."""
    average = _average_without(steps, pieces, took, unprofiled)

    def added(position: float) -> Floats:
        return pieces.added(costs, position)

    if average(added(most)) > without:
        return added(0.0), False  # something else takes the time, and it is not known what
    return added(_least(lambda position: average(added(position)) <= without, -2.0, most)), True


def _scaled(steps: Steps, pieces: HostPieces, took: Floats, unprofiled: LoggedSteps, without: float) -> Floats:
    """Returns the time in ns to remove from each piece, if all work takes the same part of its recorded time."""
    average = _average_without(steps, pieces, took, unprofiled)
    work = np.where(pieces.is_wait, 0.0, pieces.end - pieces.begin)
    return work * _least(lambda part: average(work * part) <= without, 0.0, 1.0 - LEAST_LEFT)


def _stretched(steps: Steps, pieces: HostPieces, more: float) -> Floats:
    """Returns the time in ns by which each piece becomes longer, if its step becomes longer by `more` ns."""
    step, length = _step_of(steps, pieces), (pieces.end - pieces.begin).astype(np.float64)
    total = np.append(_per_step(steps, pieces, length), np.inf)  # the last one is outside of all steps
    longer: Floats = more * length / total[step]
    return longer


def _average_without(
    steps: Steps, pieces: HostPieces, took: Floats, unprofiled: LoggedSteps
) -> Callable[[Floats], float]:
    """Returns a function from the time removed from each piece to the average time that remains per step, in ns."""
    return lambda removed: unprofiled.average(took - _per_step(steps, pieces, removed))


def _per_step(steps: Steps, pieces: HostPieces, times: Floats) -> Floats:
    """Returns the sum of `times`, one per piece, in each step. Pieces outside of all steps are left out."""
    step = _step_of(steps, pieces)
    return np.bincount(step[step >= 0], times[step >= 0], len(steps)).astype(np.float64)


def _step_of(steps: Steps, pieces: HostPieces) -> Ints:
    """Returns the index of the step in which each piece begins; -1 outside of all steps."""
    step = np.searchsorted(steps.edges, pieces.begin, side="right") - 1
    return np.where(step < len(steps), step, -1)


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Returns the smallest number from `low` to `high` for which `holds`; `high` if there is none."""
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _mapped_trace(trace: Trace, mapped: TimeMap) -> Trace:
    """Returns a copy of `trace` in which `mapped` has shifted the times of events, memory and counters."""
    events = trace.events
    start = mapped.without(events.start)
    duration = packed(mapped.without(events.end) - start)
    memory = replace(trace.memory, time=mapped.without(trace.memory.time))
    counters = replace(trace.counters, time=mapped.without(trace.counters.time))
    return replace(trace, events=replace(events, start=start, duration=duration), memory=memory, counters=counters)


def _mapped_steps(steps: Steps, mapped: TimeMap) -> Steps:
    return Steps(steps.basis, mapped.without(steps.edges), mapped.without(steps.host))
