"""The activity of each host thread at every instant, as sets of time that exclude one another.

The sets of a thread are painted by precedence: what stands first in `Activity` covers what stands behind it. Where a
thread records no dispatching of its own, the other threads that launch work speak for it: the forward and the autograd
thread hand over to each other, and only one of them drives the device at a time.
"""

from collections.abc import Iterator
from enum import IntEnum
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.training_detection import has_training
from tb_bottleneck.intervals import EMPTY, Spans, merge, subtract, union
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Between two operators a module call, its hooks and the Python around it take a few to 300 us (measured on seven public
# traces of small models: 98 % of that time lies in pauses below 300 us). A longer pause is not dispatching.
LONGEST_DISPATCH_PAUSE_NS = 500_000
# A copy that takes longer than this in the call stages pageable memory or waits; shorter ones just enqueue.
BLOCKING_CALL_NS = 30_000
# The first launch of a kernel may load its code, which takes milliseconds (CUDA programming guide, lazy loading); later
# ones return within tens of microseconds unless their queue is full, and then the device is not idle. Of thirty public
# traces, all 15 launches that leave the device idle for a millisecond are first ones; they take 2.5 ms to 3 s.
LOADING_LAUNCH_NS = 1_000_000

_RECORDED = np.isin(range(len(Kind)), (Kind.CPU_OP, Kind.CALL))
_ON_HOST = np.isin(range(len(Kind)), (Kind.CPU_OP, Kind.CALL, Kind.ANNOTATION, Kind.PYTHON))


class Activity(IntEnum):
    """What a host thread does, first come first served."""

    LOAD_BATCH = 0
    INTERRUPT = 1
    ALLOCATE = 2
    SYNCHRONIZE = 3
    COPY = 4
    INITIALIZE = 5
    DISPATCH = 6
    OTHER = 7  # a recorded thread that does none of the above: Python, or native code that records nothing


REGIME_OF_ACTIVITY = {
    Activity.LOAD_BATCH: Regime.INPUT,
    Activity.INTERRUPT: Regime.INTERRUPTION,
    Activity.INITIALIZE: Regime.INTERRUPTION,
    Activity.ALLOCATE: Regime.ALLOCATOR,
    Activity.SYNCHRONIZE: Regime.SYNC,
    Activity.COPY: Regime.TRANSFER,
    Activity.DISPATCH: Regime.LAUNCH,
    Activity.OTHER: Regime.HOST,
}
"""The owner of the time in which the device is idle because of an activity."""


class HostTimeline:
    """The activities of the threads of one trace; computed on demand, and kept."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._painted: dict[tuple[int, ...], dict[Activity, Spans]] = {}

    def activities(self, thread: int) -> dict[Activity, Spans]:
        """The exclusive sets of a thread (a row of the trace's threads), the other launching threads filling in."""
        # So those that launch all do the same; a trace may have thousands of them.
        beside = () if thread in self._launching else (thread,)
        if beside not in self._painted:
            self._painted[beside] = dict(self._paint(beside))
        return self._painted[beside]

    def by_thread_group(self, threads: Ints) -> Iterator[tuple[Bools, dict[Activity, Spans]]]:
        """Which of the threads do the same, and what; rows below 0 are no threads and are left out."""
        launching = np.isin(threads, self.launching_threads)
        if launching.any():
            yield launching, self.activities(int(self.launching_threads[0]))
        for other in np.unique(threads[~launching]).tolist():
            if other >= 0:
                yield threads == other, self.activities(other)

    @cached_property
    def launching_threads(self) -> Ints:
        """Threads that put work on a device, the busiest first.

        Where a device worked and no call was recorded, these are all that run operators.
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
        """The thread that opens the annotations, else launches most, else runs most operators."""
        for kind in (Kind.ANNOTATION, Kind.CALL, Kind.CPU_OP):
            rows = self._trace.rows(kind)
            if kind is Kind.CALL and len(self.launching_threads):
                return int(self.launching_threads[0])
            if len(rows):
                return int(np.bincount(self._trace.events.thread[rows]).argmax())
        return None

    def _paint(self, beside: tuple[int, ...]) -> Iterator[tuple[Activity, Spans]]:
        """The sets of the launching threads and those beside them, together."""
        claims = self._claims([*self._launching, *beside])
        taken = EMPTY
        for activity in Activity:
            claimed = claims.get(activity, EMPTY)
            if activity is Activity.DISPATCH:
                claimed = _bridged(merge(taken, claimed))
            free = subtract(claimed, taken)
            yield activity, free
            taken = merge(taken, free)

    def _claims(self, threads: list[int]) -> dict[Activity, Spans]:
        """What the rows of some threads say by themselves, overlapping."""
        events, calls = self._trace.events, self._trace.calls
        among = np.zeros(len(self._trace.threads), np.bool_)
        among[threads] = True
        own = among[calls.thread]
        mine, reads = calls.take(own), self._trace.reads[own]
        blocking = mine.end - mine.start > BLOCKING_CALL_NS
        rows = self._rows_of(among)
        recorded = _RECORDED[events.kind[rows]] & ~self._is_mark[events.name[rows]]
        dispatch = rows[recorded | self._is_optimizer[events.name[rows]]]
        return {
            Activity.LOAD_BATCH: self._told(rows, "load_batch"),
            Activity.INTERRUPT: self._told(rows, "interrupt"),
            Activity.ALLOCATE: _spans(mine.take(mine.role == Role.ALLOCATE)),
            Activity.SYNCHRONIZE: _spans(mine.take((mine.role == Role.WAIT) | ((mine.role == Role.COPY) & reads))),
            Activity.COPY: _spans(mine.take((mine.role == Role.COPY) & blocking & ~reads)),
            Activity.INITIALIZE: merge(
                self._told(rows, "initialize"),
                _spans(mine.take((mine.role == Role.INITIALIZE) & blocking)),
                _spans(mine.take(self._loads_code[own])),
            ),
            Activity.DISPATCH: union(events.start[dispatch], events.end[dispatch]),
        }

    def _rows_of(self, among: Bools) -> Rows:
        events = self._trace.events
        return np.flatnonzero((_ON_HOST[events.kind] & among[events.thread]) | (events.kind == Kind.OVERHEAD))

    def _told(self, rows: Rows, word: str) -> Spans:
        events = self._trace.events
        says = rows[self._says[word][events.kind[rows], events.name[rows]]]
        return union(events.start[says], events.end[says])

    @cached_property
    def _loads_code(self) -> Bools:
        """Calls that launch a kernel for the first time in the recording, and take as long as loading its code does."""
        calls, ops = self._trace.calls, self._trace.all_device_ops
        loads = np.zeros(len(calls), np.bool_)
        launched = np.flatnonzero(ops.launched)
        in_order = launched[np.argsort(ops.call[launched], kind="stable")]
        _, first = np.unique(ops.name[in_order], return_index=True)
        loads[ops.call[in_order[first]]] = True
        return np.asarray(loads & (calls.role == Role.LAUNCH) & (calls.end - calls.start > LOADING_LAUNCH_NS), np.bool_)

    @cached_property
    def _is_mark(self) -> Bools:
        """Names that torch before 1.12 wrote as operators though they mark a phase."""
        marks = ("ProfilerStep", "enumerate(Data")
        return np.array([name.startswith(marks) for name in self._trace.names], np.bool_)

    @cached_property
    def _is_optimizer(self) -> Bools:
        """Names of the optimizer's own annotations: between their operators torch is at work, not the user's Python."""
        return np.array([name.startswith("Optimizer.") for name in self._trace.names], np.bool_)

    @cached_property
    def _says(self) -> dict[str, Bools]:
        """Masks by activity in knowledge/host_activities.toml, of shape (kinds of row, names)."""
        trace, training = self._trace, has_training(self._trace)
        sources = {
            Kind.ANNOTATION: ("annotation",),
            Kind.CPU_OP: ("operator", "annotation"),
            Kind.PYTHON: ("python",),
            Kind.OVERHEAD: ("overhead",),
        }
        found = {
            word: np.zeros((len(Kind), len(trace.names)), np.bool_)
            for word in ("load_batch", "interrupt", "initialize")
        }
        for kind, on in sources.items():
            patterns = tuple(entry for source in on for entry in activity_patterns(source, training))
            used = np.bincount(trace.events.name[trace.rows(kind)], minlength=len(trace.names))
            for name in np.flatnonzero(used).tolist():
                word = first_match(patterns, trace.names[name])
                if word is not None:
                    found[word][kind, name] = True
        return found


def _spans(calls: Calls) -> Spans:
    return union(calls.start, calls.end)


def _bridged(spans: Spans) -> Spans:
    """The set with its short pauses closed: what lies between two operators belongs to dispatching them."""
    if len(spans) < 2:
        return spans
    pause = spans.starts[1:] - spans.ends[:-1] > LONGEST_DISPATCH_PAUSE_NS
    return Spans(spans.starts[np.append(True, pause)], spans.ends[np.append(pause, True)])
