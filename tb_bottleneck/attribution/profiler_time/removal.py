"""Removes the profiler's own time from a recording, so that times, shares and gains are those of the training.

While stacks are recorded, every call of a function costs time, and CPython 3.11 (3.10 a little) runs all bytecode on a
slow path. Every operator costs time, too. The training process measures these costs, or they are estimated (costs.py).
Each cost is a range from a lowest to a highest value.

If the step time without the profiler is known, one position is chosen, the same in the ranges of all costs, so that the
recorded step time minus the profiler's time equals the known step time. This is also done for single parts of the step
(step_parts.py). If some steps were recorded without stacks, the parts are the times between two operators. Otherwise,
the parts are a loader that makes batches in the main process, the backward pass and the optimizer, if the time of these
parts without the profiler is known. If even the highest costs are too small, all work was slower while it was recorded
(cold caches, other programs). Then all time except waits is also scaled.

In a run on the CPU, all time of the main thread is corrected. In a run on a device, only the time in which the device
waits is: for Python outside torch here, and for torch in dispatch_time.py.
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.profiler_time.costs import Correction, ProfilerCosts, costs_of
from tb_bottleneck.attribution.profiler_time.dispatch_time import MIN_REMOVED, without_dispatch_time
from tb_bottleneck.attribution.profiler_time.host_pieces import LEAST_LEFT, HostPieces, host_pieces
from tb_bottleneck.attribution.profiler_time.logged_steps import MAX_DIFFERENCE, LoggedSteps, logged_unprofiled
from tb_bottleneck.attribution.profiler_time.step_parts import step_parts
from tb_bottleneck.attribution.profiler_time.time_map import mapped_steps, mapped_trace, time_map
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, merge, subtract
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Floats, Ints

ROUNDS = 20
# Activities of torch. In all other time in which a device waits, Python outside torch may run.
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
    corrected = _without_host_time(recording)
    return without_dispatch_time(corrected) if recording.on_device else corrected


def _without_host_time(recording: Recording) -> Recording:
    costs, thread = costs_of(recording.trace), recording.host.main_thread
    unprofiled = logged_unprofiled(recording)
    # Operators cost time on every CPU run. Without any figure of this machine, that is not taken out.
    has_stacks = len(recording.trace.rows(Kind.PYTHON)) > 0
    if costs is None or thread is None or not (has_stacks or costs.measured):
        return recording
    pieces = host_pieces(recording.trace, thread, _python_waits(recording, thread) if recording.on_device else None)
    added, solved = pieces.added(costs, 0.0), False
    if unprofiled is not None:
        added, solved = _solved(recording, thread, pieces, costs, unprofiled)
    inside = recording.in_window(pieces.begin)
    removed, waits = (float(np.maximum(time, 0.0)[inside].sum()) for time in (added, -added))
    if removed < MIN_REMOVED * recording.account.window:
        return recording
    mapped = time_map(pieces.begin, pieces.end, added)
    correction = Correction(costs, solved, removed, waits)
    trace, steps = mapped_trace(recording.trace, mapped), mapped_steps(recording.steps, mapped)
    return Recording(trace, steps, correction, recording)


def _python_waits(recording: Recording, thread: int) -> Spans:
    """Returns the time in which the device waits for Python outside torch on `thread`."""
    activities = recording.host.activities(thread)
    return subtract(recording.idle, merge(*(activities[activity] for activity in _IN_TORCH)))


def _solved(
    recording: Recording, thread: int, pieces: HostPieces, costs: ProfilerCosts, unprofiled: LoggedSteps
) -> tuple[Floats, bool]:
    """Returns the time in ns that the profiler added to each piece, and True if this explains the logged step time.

    The parts of the step whose time without the profiler is known are solved one by one. The rest of the step is solved
    last, so that the whole step takes as long as logged. If the costs do not explain the time of a part, for example
    because of cold caches, the part is scaled as a whole. If the step waits longer for loader workers without the
    profiler, the added time of these waits is negative, and the costs have to explain the rest of the step. If this
    does not give the logged step time, all pieces are corrected with one position instead. This happens, for example,
    if the logged time of an optimizer contains the time of its closure.
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
    """Returns the time in ns that the profiler added to each of `pieces`, and True if this explains the time `without`.

    The pieces together took `took` ns in each recorded step, and `without` ns per step without the profiler. `most` is
    the highest position in the ranges of the costs that is tried (HostPieces.added).
    """
    average = _average_without(steps, pieces, took, unprofiled)

    def added(position: float) -> Floats:
        return pieces.added(costs, position)

    if average(added(most)) > without:
        return added(0.0), False  # something else takes the time, and it is not known what
    return added(_least(lambda position: average(added(position)) <= without, -2.0, most)), True


def _scaled(steps: Steps, pieces: HostPieces, took: Floats, unprofiled: LoggedSteps, without: float) -> Floats:
    """Returns the time in ns to remove from each piece: the same share of each piece, and nothing of waits.

    The share is chosen so that the pieces together take `without` ns per step instead of `took`.
    """
    average = _average_without(steps, pieces, took, unprofiled)
    work = np.where(pieces.is_wait, 0.0, pieces.end - pieces.begin)
    return work * _least(lambda part: average(work * part) <= without, 0.0, 1.0 - LEAST_LEFT)


def _stretched(steps: Steps, pieces: HostPieces, more: float) -> Floats:
    """Returns the time in ns by which each piece becomes longer if the pieces of each step get `more` ns in total."""
    step, length = _step_of(steps, pieces), (pieces.end - pieces.begin).astype(np.float64)
    total = np.append(_per_step(steps, pieces, length), np.inf)  # the last one is outside of all steps
    longer: Floats = more * length / total[step]
    return longer


def _average_without(
    steps: Steps, pieces: HostPieces, took: Floats, unprofiled: LoggedSteps
) -> Callable[[Floats], float]:
    """Returns a function that gets the time removed from each piece, and returns the average remaining time per step.

    Times are in ns. `took` is the time per recorded step before the removal.
    """
    return lambda removed: unprofiled.average(took - _per_step(steps, pieces, removed))


def _per_step(steps: Steps, pieces: HostPieces, times: Floats) -> Floats:
    """Returns for each step the sum of `times` (one per piece) over the pieces that begin in the step."""
    step = _step_of(steps, pieces)
    return np.bincount(step[step >= 0], times[step >= 0], len(steps)).astype(np.float64)


def _step_of(steps: Steps, pieces: HostPieces) -> Ints:
    """Returns for each piece the index of the step in which it begins, or -1 if it begins outside all steps."""
    step = np.searchsorted(steps.edges, pieces.begin, side="right") - 1
    return np.where(step < len(steps), step, -1)


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Returns the smallest number x from `low` to `high` with holds(x), by bisection; `high` if there is none."""
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
