"""Measures of loops that call the same small work for one item of a batch after the other.

A loop is a sequence of top-level operators of the main thread (names and shapes) that repeats at least MIN_CALLS times
in a row within one step. Layers of a model repeat, too: each call must also select one item and make a batch of one of
it (select, then unsqueeze). Recurrent operators are left out, because each call needs the result of the one before it.
"""

import re
from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import host_step_of, in_host_steps, with_example
from tb_bottleneck.record import Record
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools, Ints

# A batch of fewer items leaves little to gain: one call in the place of eight saves seven eighths of the dispatching.
MIN_CALLS = 8
# Operators of one call. One or two in a row are reads or copies, not a call of a model.
MIN_OPERATORS, MAX_OPERATORS = 3, 400
_SELECTS, _BATCH_OF_ONE = "aten::select", "aten::unsqueeze"
_RECURRENT = re.compile(r"lstm|gru|rnn", re.IGNORECASE)


class RepeatedCalls(Record, frozen=True, eq=False):
    """The calls of all loops on the host's clock: [begin, end) in ns, and whether a call is its loop's first."""

    begin: Ints
    end: Ints
    first: Bools

    @property
    def others(self) -> Spans:
        """The time of all calls but each loop's first: what one batched call makes unnecessary."""
        return union(self.begin[~self.first], self.end[~self.first])


def unbatched_calls(recording: Recording) -> Measure | Missing:
    """Equal calls per step, one per item of a batch."""
    calls = repeated_calls(recording)
    return with_example(len(calls.begin) / len(recording.steps), "count", "step", calls.begin, calls.end)


def idle_in_unbatched_calls(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle during equal calls for one item each, without the first ones."""
    others = repeated_calls(recording).others
    idle = int(recording.idle.covered(others.starts, others.ends).sum())
    return Measure(idle / recording.account.window, "share", "window", len(others))


@memoized
def repeated_calls(recording: Recording) -> RepeatedCalls:
    """Returns the calls of all loops, in order of time."""
    events, rows = recording.trace.events, _top_level(recording)
    name = events.name[rows]
    step = host_step_of(recording, events.start[rows])
    keys = np.unique(np.stack((name, events.signature[rows], step)), axis=1, return_inverse=True)[1].reshape(-1)
    selects, of_one, recurrent = (
        name_matches(recording.trace.names, name, test)
        for test in (_SELECTS.__eq__, _BATCH_OF_ONE.__eq__, lambda text: _RECURRENT.search(text) is not None)
    )
    makes_batch = selects & np.append(of_one[1:], False)
    begin, end, first = [], [], []
    for at, period, calls in _repeats(np.asarray(keys, np.int64)):
        loop = slice(at, at + period * calls)
        if not makes_batch[loop].any() or recurrent[loop].any():
            continue
        starts = events.start[rows[loop]][::period]
        begin.append(starts)
        end.append(np.append(starts[1:], events.end[rows[loop]][-1]))
        first.append(np.arange(calls) == 0)
    if not begin:
        return RepeatedCalls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))
    order = np.argsort(np.concatenate(begin), kind="stable")
    return RepeatedCalls(*(np.concatenate(column)[order] for column in (begin, end, first)))


def _top_level(recording: Recording) -> Ints:
    """Returns the main thread's operators of the host's steps that are in no other operator, in order of time."""
    events, rows = recording.trace.events, recording.trace.rows(Kind.CPU_OP)
    rows = rows[(events.thread[rows] == recording.host.main_thread) & in_host_steps(recording, events.start[rows])]
    rows = rows[np.lexsort((-events.end[rows], events.start[rows]))]
    reach = np.maximum.accumulate(events.end[rows])
    top: Ints = rows[np.append(True, events.start[rows][1:] >= reach[:-1])[: len(rows)]]
    return top


def _repeats(keys: Ints) -> Iterator[tuple[int, int, int]]:
    """Yields disjoint repeats as (position, period, number of calls), short periods first."""
    taken = np.zeros(len(keys), np.bool_)
    for period in range(MIN_OPERATORS, min(MAX_OPERATORS, len(keys) // MIN_CALLS) + 1):
        equal = np.concatenate(([0], keys[period:] == keys[:-period], [0]))
        edges = np.diff(equal.astype(np.int8))
        for at, until in zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True):
            calls = (until - at) // period + 1
            free = calls >= MIN_CALLS and not taken[at : at + period * calls].any()
            if free and not _is_shorter_repeat(keys[at : at + period * calls]):
                taken[at : at + period * calls] = True
                yield at, period, calls


def _is_shorter_repeat(keys: Ints) -> bool:
    """Returns True if the keys repeat with a period below MIN_OPERATORS."""
    return any(np.array_equal(keys[period:], keys[:-period]) for period in range(1, MIN_OPERATORS))
