"""The activities of each host thread, such as waiting for a batch or dispatching, as disjoint sets of time.

If several activities overlap, the time belongs to the first of these activities in `Activity`. All threads that launch
work on a device share one timeline, because the forward thread and the autograd thread take turns: only one of them
launches work at a time.
"""

from collections.abc import Iterator
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.attribution.cpu_collectives import host_collectives, waits_for_collectives
from tb_bottleneck.attribution.host_operators import (
    HostOperators,
    InlineEvaluations,
    first_time_spans,
    host_operators_of,
    inline_evaluations,
)
from tb_bottleneck.attribution.training_detection import OPTIMIZER, has_training, optimizer_time_of
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import EMPTY, Spans, merge, subtract, union
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.trace.columns.packed_column import look_up
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Between two operators, a module call, its hooks and the Python around it take up to 300 us (measured on seven public
# traces of small models: 98 % of that time is in pauses below 300 us). A longer pause is not dispatching.
LONGEST_DISPATCH_PAUSE_NS = 500_000
# Making a tensor from a few Python numbers takes some us. A call that takes at least this long converts data. It does
# not count as dispatching, even if it is shorter than LONGEST_DISPATCH_PAUSE_NS. A choice: 0.1 ms is a list of some
# thousand numbers.
SHORTEST_CONVERSION_NS = 100_000
# A call that copies and takes longer than this stages pageable memory or waits. A shorter call only enqueues the copy.
BLOCKING_CALL_NS = 30_000
# The first launch of a kernel may load its code, which takes milliseconds (CUDA programming guide, lazy loading). Later
# launches return within tens of microseconds unless their queue is full, and then the device is not idle. In thirty
# public traces, all 15 launches that leave the device idle for a millisecond are first launches; they take 2.5 ms to
# 3 s.
LOADING_LAUNCH_NS = 1_000_000

_DISPATCHES = np.isin(range(len(Kind)), (Kind.CPU_OP, Kind.CALL))
_MAY_BE_OPTIMIZER = np.isin(range(len(Kind)), (Kind.CPU_OP, Kind.ANNOTATION))
_ON_HOST = np.isin(range(len(Kind)), (Kind.CPU_OP, Kind.CALL, Kind.ANNOTATION, Kind.PYTHON))


class Activity(IntEnum):
    """Activities of a host thread, in order of precedence."""

    LOAD_BATCH = 0
    INTERRUPT = 1
    ALLOCATE = 2
    SYNCHRONIZE = 3
    COPY = 4
    INITIALIZE = 5
    COMPUTE = 6  # operators on tensors of the host, in a run on a device (attribution/host_operators.py)
    DISPATCH = 7
    OTHER = 8  # none of the above: Python, or native code that records nothing


REGIME_OF_ACTIVITY = {
    Activity.LOAD_BATCH: Regime.INPUT,
    Activity.INTERRUPT: Regime.INTERRUPTION,
    Activity.INITIALIZE: Regime.INTERRUPTION,
    Activity.ALLOCATE: Regime.ALLOCATOR,
    Activity.SYNCHRONIZE: Regime.SYNC,
    Activity.COPY: Regime.TRANSFER,
    Activity.COMPUTE: Regime.HOST,
    Activity.DISPATCH: Regime.LAUNCH,
    Activity.OTHER: Regime.HOST,
}
"""For each activity, the regime that owns the time in which the device is idle because of this activity."""


def activity_named(name: str) -> Activity:
    """Returns the activity that knowledge/host_activities.toml calls `name`. Raises KeyError if there is none."""
    return Activity[name.upper()]


class HostTimeline:
    """The activities of the threads of one trace, computed on first use and cached."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._cache: dict[tuple[int, ...], dict[Activity, Spans]] = {}

    @cached_property
    def recorded(self) -> bool:
        """True if operators, annotations or Python frames were recorded, and not only calls of the runtime."""
        return len(self._trace.rows(Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON)) > 0

    def activities(self, thread: int) -> dict[Activity, Spans]:
        """Returns a dict from activities to disjoint sets of time.

        The times are those of `thread` (a row of the trace's threads) and of all launching threads together.
        """
        # All launching threads share one entry; a trace may have thousands of them.
        others = () if thread in self._launching else (thread,)
        if others not in self._cache:
            self._cache[others] = dict(self._exclusive(others))
        return self._cache[others]

    def by_thread_group(self, threads: Ints) -> Iterator[tuple[Bools, dict[Activity, Spans]]]:
        """Yields pairs of a mask of `threads` and the activities of the masked threads, as `activities` returns them.

        `threads` has rows of the trace's threads, possibly repeated. All launching threads are in one mask; each other
        thread has its own mask. Elements below 0 (no thread) are in no mask.
        """
        launching = np.isin(threads, self.launching_threads)
        if launching.any():
            yield launching, self.activities(int(self.launching_threads[0]))
        for other in distinct_values(threads[~launching]).tolist():
            if other >= 0:
                yield threads == other, self.activities(other)

    @cached_property
    def launching_threads(self) -> Ints:
        """The threads that launch work on a device (rows of the trace's threads), most calls first.

        If a device worked and no call was recorded, these are all threads that run operators.
        """
        trace = self._trace
        calling = trace.calls.of(Role.LAUNCH, Role.FILL, Role.COPY).thread
        if not len(calling) and len(trace.all_device_ops):
            calling = trace.events.thread[trace.rows(Kind.CPU_OP)]
        threads, counts = np.unique(calling, return_counts=True)
        return np.asarray(threads[np.argsort(-counts)], np.int64)

    @cached_property
    def _launching(self) -> frozenset[int]:
        return frozenset(self.launching_threads.tolist())

    @cached_property
    def main_thread(self) -> int | None:
        """The main thread, as a row of the trace's threads.

        It is the thread with the most annotations. If there are none, it is the thread with the most launches, then the
        one with the most runtime calls, then the one with the most operators. None if nothing of this was recorded.
        Annotations of collectives on the host do not count, because the threads of Gloo annotate each collective.
        """
        for kind in (Kind.ANNOTATION, Kind.CALL, Kind.CPU_OP):
            rows = np.setdiff1d(self._trace.rows(kind), host_collectives(self._trace), assume_unique=True)
            if kind is Kind.CALL and len(self.launching_threads):
                return int(self.launching_threads[0])
            if len(rows):
                return int(np.bincount(self._trace.events.thread[rows]).argmax())
        return None

    @cached_property
    def host_operators(self) -> HostOperators:
        """The operators on the launching threads that compute on tensors of the host and launch no work on a device."""
        launching = self.launching_threads
        among = np.zeros(len(self._trace.threads), np.bool_)
        among[launching] = True
        return host_operators_of(self._trace, launching, self._named(self._rows_of(among))[Activity.LOAD_BATCH])

    def _exclusive(self, others: tuple[int, ...]) -> Iterator[tuple[Activity, Spans]]:
        """Yields each activity with the time in which the launching threads or the threads `others` do it.

        The times do not overlap: a moment of several activities belongs to one of them, usually the first one in the
        order of `Activity`.
        """
        recorded = self._recorded([*self._launching, *others])
        taken = EMPTY
        for activity in Activity:
            spans = recorded.get(activity, EMPTY)
            if activity is Activity.DISPATCH:
                converts = subtract(recorded.get(Activity.OTHER, EMPTY), spans)
                active = merge(taken, spans)
                closed = _close_short_pauses(active)
                waits = waits_for_collectives(self._trace, subtract(closed, active))
                spans = subtract(closed, merge(converts, waits))
            free = subtract(spans, taken)
            yield activity, free
            taken = merge(taken, free)

    def _recorded(self, threads: list[int]) -> dict[Activity, Spans]:
        """Returns the recorded time of each activity on `threads`. The sets of different activities may overlap."""
        events, calls = self._trace.events, self._trace.calls
        among = np.zeros(len(self._trace.threads), np.bool_)
        among[threads] = True
        is_own = among[calls.thread]
        own, reads = calls.take(is_own), self._trace.reads[is_own]
        is_blocking = own.end - own.start > BLOCKING_CALL_NS
        rows = self._rows_of(among)
        dispatch = rows[_DISPATCHES[events.kind[rows]] & ~self._is_mark[events.name[rows]]]
        # Between the operators of an optimizer, torch's Python code runs, not the user's.
        optimizer = optimizer_time_of(self._trace, rows[_MAY_BE_OPTIMIZER[events.kind[rows]]], OPTIMIZER)
        named = self._named(rows)
        conversions = named.get(Activity.OTHER, EMPTY)
        is_long = conversions.ends - conversions.starts >= SHORTEST_CONVERSION_NS
        batches = self.host_operators.spans(makes_batch=True)
        return named | {
            Activity.LOAD_BATCH: merge(named[Activity.LOAD_BATCH], batches),
            Activity.INTERRUPT: merge(named[Activity.INTERRUPT], self._evaluated(among)),
            Activity.ALLOCATE: _spans(own.take(own.role == Role.ALLOCATE)),
            Activity.SYNCHRONIZE: _spans(own.take((own.role == Role.WAIT) | ((own.role == Role.COPY) & reads))),
            Activity.COPY: _spans(own.take((own.role == Role.COPY) & is_blocking & ~reads)),
            Activity.INITIALIZE: merge(
                named[Activity.INITIALIZE],
                _spans(own.take((own.role == Role.INITIALIZE) & is_blocking)),
                _spans(own.take(self._loads_code[is_own])),
                self._first_time,
            ),
            Activity.OTHER: Spans(conversions.starts[is_long], conversions.ends[is_long]),
            Activity.COMPUTE: self.host_operators.spans(makes_batch=False),
            Activity.DISPATCH: merge(union(events.start[dispatch], events.end[dispatch]), optimizer),
        }

    @cached_property
    def inline_evaluations(self) -> InlineEvaluations:
        """The evaluations, each from a call of `model.eval()` to the next call of `model.train()`."""
        return inline_evaluations(self._trace)

    def _evaluated(self, among: Bools) -> Spans:
        """Returns the time of `inline_evaluations` on the threads in the mask `among`."""
        evaluations, events = self.inline_evaluations, self._trace.events
        own = among[events.thread[evaluations.rows]]
        return union(events.start[evaluations.rows[own]], evaluations.end[own])

    def _rows_of(self, among: Bools) -> Rows:
        """Returns the event rows of the host on the threads in the mask `among`, and the overhead rows of all threads.

        Overhead rows are time that the profiler itself records as its overhead.
        """
        events = self._trace.events
        chosen = look_up(_ON_HOST, events.kind) & look_up(among, events.thread)
        return np.flatnonzero(chosen | (events.kind == Kind.OVERHEAD))

    def _named(self, rows: Rows) -> dict[Activity, Spans]:
        """Returns a dict with the activities in knowledge/host_activities.toml.

        Each activity maps to the time of those of `rows` (event rows) whose names match a pattern of the activity.
        """
        events, (activities, activity_of) = self._trace.events, self._activity_of_name
        has_activity: Bools = activity_of.max(axis=0, initial=-1) >= 0  # true for few names
        rows = rows[has_activity[events.name[rows]]]
        found = activity_of[events.kind[rows], events.name[rows]]
        chosen = {activity: rows[found == activity] for activity in activities}
        return {activity: union(events.start[of], events.end[of]) for activity, of in chosen.items()}

    @cached_property
    def _loads_code(self) -> Bools:
        """A mask of the runtime calls: True if a call launches a kernel for the first time and takes longer than
        LOADING_LAUNCH_NS, so that it probably loads the code of the kernel."""
        calls, ops = self._trace.calls, self._trace.all_device_ops
        loads = np.zeros(len(calls), np.bool_)
        launched = np.flatnonzero(ops.launched)
        in_order = launched[np.argsort(ops.call[launched], kind="stable")]
        _, first = np.unique(ops.name[in_order], return_index=True)
        loads[ops.call[in_order[first]]] = True
        return np.asarray(loads & (calls.role == Role.LAUNCH) & (calls.end - calls.start > LOADING_LAUNCH_NS), np.bool_)

    @cached_property
    def _first_time(self) -> Spans:
        """Returns the time of work in operators that only their first call does, such as compiling or loading code."""
        return first_time_spans(self._trace, self.launching_threads, self._is_mark)

    @cached_property
    def _is_mark(self) -> Bools:
        """A mask of the trace's names: True for names of steps and their phases.

        Torch before 1.12 records these phases as operators.
        """
        marks = ("ProfilerStep", "enumerate(Data", OPTIMIZER)
        return np.array([name.startswith(marks) for name in self._trace.names], np.bool_)

    @cached_property
    def _activity_of_name(self) -> tuple[list[Activity], NDArray[np.int8]]:
        """A sorted list of the activities that have patterns in knowledge/host_activities.toml, and an array of shape
        (kinds of event, names). The array has the activity of an event with that kind and name, or -1 for none."""
        trace, training = self._trace, has_training(self._trace)
        sources = {
            Kind.ANNOTATION: ("annotation",),
            Kind.CPU_OP: ("operator", "annotation"),
            Kind.PYTHON: ("python",),
            Kind.OVERHEAD: ("overhead",),
        }
        patterns_of = {
            kind: tuple(entry for source in on for entry in activity_patterns(source, training))
            for kind, on in sources.items()
        }
        activity_of = np.full((len(Kind), len(trace.names)), -1, np.int8)
        for kind, patterns in patterns_of.items():
            used = np.bincount(trace.events.name[trace.rows(kind)], minlength=len(trace.names))
            for name in np.flatnonzero(used).tolist():
                activity = first_match(patterns, trace.names[name])
                if activity is not None:
                    activity_of[kind, name] = activity_named(activity)
        labels = {entry.label for patterns in patterns_of.values() for entry in patterns}
        return sorted(map(activity_named, labels)), activity_of


def _spans(calls: Calls) -> Spans:
    return union(calls.start, calls.end)


def _close_short_pauses(spans: Spans) -> Spans:
    """Returns `spans` and the pauses of at most LONGEST_DISPATCH_PAUSE_NS between them.

    A short pause between two operators is dispatching.
    """
    if len(spans) < 2:
        return spans
    pause = spans.starts[1:] - spans.ends[:-1] > LONGEST_DISPATCH_PAUSE_NS
    return Spans(spans.starts[np.append(True, pause)], spans.ends[np.append(pause, True)])
