"""Removes the profiler's own time from a recording, so that times, shares and gains are those of the training.

While stacks are recorded, every call of a function costs time, and CPython 3.11 (3.10 a little) runs all bytecode on a
slow path. Every operator costs time, too. The process measures these costs, or they are estimated (costs.py); each cost
is a range. If the step time without the profiler is known, one position is chosen in all ranges, so that the recorded
step minus the profiler's time takes that long. The same is done for the loader alone if it makes its batches in the
main process, because numpy and codecs slow down less than bytecode. If even the highest costs do not suffice, all work
was slower while it was recorded (cold caches, other programs), and all of it is scaled.

On a CPU run, all time of the main thread is corrected. On a device, only the time in which the device waits for Python
outside torch is corrected. Predictions correct the dispatching (replay/host_scale.py).
"""

import re
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.profiler_time.costs import Correction, ProfilerCosts, TimeMap, costs_of, time_map
from tb_bottleneck.attribution.profiler_time.logged_steps import LoggedSteps, logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, merge, overlapping, subtract, union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Floats, Ints
from tb_bottleneck.trace.trace import Trace

BUILT_IN = "<built-in"
"""Prefix of the names that the profiler gives to functions written in C."""
WAITS = re.compile(r"<built-in (?:function|method) (?:sleep|acquire|wait|wait4|waitpid|poll|select)(?: of .*)?>")
"""Functions of CPython that wait: they take as long on a machine with cold caches or other programs."""
OUTSIDE = 0.75
"""Share of the cost of recording an event that lies outside the event itself."""
LEAST_LEFT = 0.05
"""Smallest share of its time that a piece keeps, so that no event vanishes. A choice."""
SLOWEST_PACE = 1 / 1.5
"""Smallest pace. At a smaller pace, the recorded steps are not typical (ATYPICAL_FROM in measures/trace)."""


class HostPieces(Record, frozen=True, eq=False):
    """The time of a thread, cut into pieces at the start and the end of each recorded event. In order of time, in ns.

    A piece belongs to the innermost event that runs: Python bytecode runs in a Python function (`is_python`), native
    code in a built-in function or an operator. In some built-in functions the thread waits (`is_wait`). Recording the
    start or the end of an event takes time at that place: three quarters of this time before the start or after the
    end, where another event is the innermost one, and a quarter inside (measured with torch 2.13 on `len`, an empty
    Python function and `Tensor.add_`).

    `edges` has the shape (3, pieces), for Python functions, built-in functions and operators: how many recorded events
    cost time in each piece. A start or an end counts as one half.
    """

    begin: Ints
    end: Ints
    is_python: Bools
    is_wait: Bools
    edges: Floats

    def added(self, costs: ProfilerCosts, position: float) -> Floats:
        """Returns the time in ns that the profiler adds to each piece. `position` says how high its costs are.

        -2: nothing; -1 to 1: that position in the ranges of the costs (CostRange.at); 2: the highest costs, and without
        the profiler, all other work takes SLOWEST_PACE times as long, waits excepted. Values in between are
        interpolated.
        """
        length = (self.end - self.begin).astype(np.float64)
        within = min(max(position, -1.0), 1.0)
        per_row = np.array([cost.at(within) for cost in (costs.python_call, costs.c_call, costs.operator)])
        left = length - per_row @ self.edges
        left = np.where(self.is_python, left / costs.slowdown.at(within), left)
        pace = np.where(self.is_wait, 1.0, 1.0 - (1.0 - SLOWEST_PACE) * max(position - 1.0, 0.0))
        part = min(position + 2.0, 1.0)
        added: Floats = part * (length - pace * np.clip(left, LEAST_LEFT * length, length))
        return added

    def take(self, rows: Bools) -> "HostPieces":
        """Returns the pieces that the mask `rows` selects."""
        return HostPieces(
            self.begin[rows], self.end[rows], self.is_python[rows], self.is_wait[rows], self.edges[:, rows]
        )


def host_pieces(trace: Trace, thread: int) -> HostPieces:
    """Returns the pieces of `thread` (a row of the trace's threads)."""
    events, rows = trace.events, trace.rows(Kind.PYTHON, Kind.CPU_OP, Kind.CALL)
    rows = rows[events.thread[rows] == thread]
    kind = events.kind[rows]
    is_python = kind == Kind.PYTHON
    is_c = is_python & name_matches(trace.names, events.name[rows], lambda name: name.startswith(BUILT_IN))
    is_function = is_python & ~is_c
    nesting = nest(events.start[rows], events.end[rows])
    begin, end, owner = nesting.self_spans(np.ones(len(rows), np.bool_))
    # The edges at the ends of each piece; a piece that its own row begins or ends has the inner side of that edge.
    inner_begin, inner_end = begin == nesting.start[owner], end == nesting.end[owner]
    edges = np.zeros((3, len(begin)))
    for column, of_kind in enumerate((is_function, is_c, kind == Kind.CPU_OP)):
        mine = np.flatnonzero(of_kind)
        ends_here = _count(np.sort(nesting.end[mine]), begin)
        begins_here = _count(nesting.start[mine], end)
        own = of_kind[owner].astype(np.float64)
        edges[column] += np.where(inner_begin, own * (1 - OUTSIDE), ends_here * OUTSIDE) / 2
        edges[column] += np.where(inner_end, own * (1 - OUTSIDE), begins_here * OUTSIDE) / 2
    waits = is_c & name_matches(trace.names, events.name[rows], lambda name: WAITS.fullmatch(name) is not None)
    return HostPieces(begin, end, is_function[owner], waits[owner], edges)


def _count(times: Ints, wanted: Ints) -> Ints:
    """Returns an array with 1 for each element of `wanted` that is in the sorted `times`, and 0 for the others."""
    found = np.searchsorted(times, wanted, side="right") - np.searchsorted(times, wanted, side="left")
    return np.asarray(np.minimum(found, 1), np.int64)


# A smaller part of the steps makes no difference to any share that a report shows.
MIN_REMOVED = 0.005
ROUNDS = 20
_OWN_LOADER = "#_SingleProcessDataLoaderIter"  # torch/utils/data/dataloader.py
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
    if added[inside].sum() < MIN_REMOVED * recording.account.window:
        return recording
    mapped = time_map(pieces.begin, pieces.end, added)
    correction = Correction(mapped, costs, solved)
    trace, steps = _mapped_trace(recording.trace, mapped), _mapped_steps(recording.steps, mapped)
    return Recording(trace, steps, correction, recording)


def _while_waiting(recording: Recording, thread: int, pieces: HostPieces) -> HostPieces:
    """Returns the parts of `pieces` during which the device waits for Python outside torch."""
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
    """Returns the time in ns that the profiler added to each piece, and True if the steps without it match the logged.

    The loader's part of the steps is solved separately if the loader's time without the profiler is known.
    """
    durations = recording.steps.durations.astype(np.float64)
    if recording.on_device:  # what else takes longer there is dispatching
        return _part_solved(recording.steps, pieces, costs, durations, unprofiled, unprofiled.step, most=0.0)
    loader = _own_loader(recording.trace, thread)
    if unprofiled.loader is None or not len(loader):
        return _part_solved(recording.steps, pieces, costs, durations, unprofiled, unprofiled.step)
    is_loader = loader.contains(pieces.begin)
    loading = loader.covered(recording.steps.edges[:-1], recording.steps.edges[1:]).astype(np.float64)
    added, solved = np.zeros(len(is_loader)), True
    for rows, took, without in (
        (is_loader, loading, unprofiled.loader),
        (~is_loader, durations - loading, unprofiled.step - unprofiled.loader),
    ):
        added[rows], right = _part_solved(recording.steps, pieces.take(rows), costs, took, unprofiled, without)
        solved &= right
    return added, solved


def _part_solved(
    steps: Steps,
    pieces: HostPieces,
    costs: ProfilerCosts,
    took: Floats,
    unprofiled: LoggedSteps,
    without: float,
    most: float = 2.0,
) -> tuple[Floats, bool]:
    """Returns the same as _solved, for pieces that are a part of the steps, such as the loader's. The pieces took
    `took` ns in each recorded step, and take `without` ns per step without the profiler."""
    step = np.searchsorted(steps.edges, pieces.begin, side="right") - 1
    inside = (step >= 0) & (step < len(steps))

    def average(position: float) -> float:
        added = pieces.added(costs, position)
        return unprofiled.average(took - np.bincount(step[inside], added[inside], len(steps)))

    if average(most) > without:
        return pieces.added(costs, 0.0), False  # something else takes the time, and it is not known what
    low, high = -2.0, most
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if average(middle) > without else (low, middle)
    return pieces.added(costs, high), True


def _own_loader(trace: Trace, thread: int) -> Spans:
    """Returns the time in which a loader without workers makes batches in `thread`."""
    events = trace.events
    rows = name_matches(trace.names, events.name[:], lambda name: _OWN_LOADER in name) & (events.thread[:] == thread)
    return union(events.start[rows], events.end[rows])


def _mapped_trace(trace: Trace, mapped: TimeMap) -> Trace:
    """Returns the trace with all times mapped."""
    events = trace.events
    start = mapped.without(events.start)
    duration = packed(mapped.without(events.end) - start)
    memory = replace(trace.memory, time=mapped.without(trace.memory.time))
    counters = replace(trace.counters, time=mapped.without(trace.counters.time))
    return replace(trace, events=replace(events, start=start, duration=duration), memory=memory, counters=counters)


def _mapped_steps(steps: Steps, mapped: TimeMap) -> Steps:
    return Steps(steps.basis, mapped.without(steps.edges), mapped.without(steps.host))
