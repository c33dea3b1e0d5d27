"""Removes the profiler's own time from a recording, so that its times, shares and gains are those of the training.

While stacks are recorded, every call of a function costs time, and CPython 3.10 and 3.11 run all bytecode on their slow
path; every operator costs time, too. How much is measured by the process or estimated (costs.py), within a range. If
the step time without the profiler is known, the position in these ranges, one for all costs, is solved for: the
recorded step without the profiler's time then takes as long. Where even the highest costs do not suffice, all work was
slower while it was recorded (cold caches, other programs), and all of it is scaled.

On a CPU run, this holds for all time of the main thread. On a device, only the time in which the device waits for
Python outside torch is corrected: dispatching beside it is corrected in predictions (replay/host_scale.py).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.profiler_time.correction import Correction
from tb_bottleneck.attribution.profiler_time.costs import ProfilerCosts, costs_of
from tb_bottleneck.attribution.profiler_time.host_pieces import HostPieces, host_pieces
from tb_bottleneck.attribution.profiler_time.time_map import TimeMap, time_map
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.attribution.unprofiled import logged_unprofiled
from tb_bottleneck.intervals import merge, overlapping, subtract
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.trace import Trace

# A smaller part of the steps makes no difference to any share that a report shows.
MIN_REMOVED = 0.005
# With a smaller one, the recorded steps are not those of the run (measures/trace/profiler_overhead.py: ATYPICAL_FROM).
SLOWEST_PACE = 1 / 1.5
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
    """Returns the recording without the profiler's time; the recording itself if it cannot be told, or is little."""
    costs, thread = costs_of(recording.trace), recording.host.main_thread
    unprofiled = logged_unprofiled(recording)
    # Operators cost time on every CPU run. Without any figure of this machine, that is not taken out.
    has_stacks = len(recording.trace.rows(Kind.PYTHON)) > 0
    if costs is None or thread is None or not (has_stacks or costs.measured):
        return recording
    pieces = host_pieces(recording.trace, thread)
    if recording.on_device:
        pieces = _while_waiting(recording, thread, pieces)
    position, pace, solved = 0.0, 1.0, False
    if unprofiled is not None:
        position, pace, solved = _solved(recording.steps, pieces, costs, unprofiled.median)
        if recording.on_device:  # what else takes longer there is dispatching
            position, pace = min(position, 0.0), 1.0
    added = pieces.added(costs, position, pace)
    inside = recording.in_window(pieces.begin)
    if added[inside].sum() < MIN_REMOVED * recording.account.window:
        return recording
    mapped = time_map(pieces.begin, pieces.end, added)
    correction = Correction(mapped, costs, position, pace, solved)
    trace, steps = _mapped_trace(recording.trace, mapped), _mapped_steps(recording.steps, mapped)
    return Recording(trace, steps, correction, recording)


def _while_waiting(recording: Recording, thread: int, pieces: HostPieces) -> HostPieces:
    """Returns the parts of the pieces in which the device waits for Python outside torch."""
    activities = recording.host.activities(thread)
    waiting = subtract(recording.idle, merge(*(activities[activity] for activity in _IN_TORCH)))
    own, span = overlapping(pieces.begin, pieces.end, waiting.starts, waiting.ends)
    begin = np.maximum(pieces.begin[own], waiting.starts[span])
    end = np.minimum(pieces.end[own], waiting.ends[span])
    part = (end - begin) / (pieces.end - pieces.begin)[own]
    return HostPieces(begin, end, pieces.is_python[own], pieces.edges[:, own] * part)


def _solved(steps: Steps, pieces: HostPieces, costs: ProfilerCosts, unprofiled: float) -> tuple[float, float, bool]:
    """Returns position and pace at which the median step takes as long as without the profiler, and whether it does."""
    step = np.searchsorted(steps.edges, pieces.begin, side="right") - 1
    inside = (step >= 0) & (step < len(steps))

    def median(position: float, pace: float = 1.0) -> float:
        added = pieces.added(costs, position, pace)
        return float(np.median(steps.durations - np.bincount(step[inside], added[inside], len(steps))))

    if median(-1.0) <= unprofiled:
        return -1.0, 1.0, True
    if median(1.0) <= unprofiled:
        return _bisected(median, unprofiled, -1.0, 1.0), 1.0, True
    if median(1.0, SLOWEST_PACE) > unprofiled:
        return 1.0, 1.0, False
    return 1.0, _bisected(partial(median, 1.0), unprofiled, 1.0, SLOWEST_PACE), True


def _bisected(falling: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Returns where a function that falls from `low` to `high` has the value."""
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > wanted else (low, middle)
    return (low + high) / 2


def _mapped_trace(trace: Trace, mapped: TimeMap) -> Trace:
    """Returns the trace with all times mapped."""
    events = trace.events
    start = mapped.without(events.start)
    duration = packed(mapped.without(events.end) - start)
    memory = replace(trace.memory, time=mapped.without(trace.memory.time))
    return replace(trace, events=replace(events, start=start, duration=duration), memory=memory)


def _mapped_steps(steps: Steps, mapped: TimeMap) -> Steps:
    return Steps(steps.basis, mapped.without(steps.edges), mapped.without(steps.host))
