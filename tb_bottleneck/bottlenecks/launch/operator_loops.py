"""Loops over operators of the main thread: unbatched calls, which repeat the same small work for each item of a
batch."""

import re
from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.measures.trace.window_rows import host_step_of, in_host_steps, with_example
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows

# A batch of fewer items leaves little to gain: one call in the place of eight saves seven eighths of the dispatching.
MIN_CALLS = 8
# Operators of one call. One or two in a row are reads or copies, not a call of a model.
MIN_OPERATORS, MAX_OPERATORS = 3, 400
SELECTS, _BATCH_OF_ONE = "aten::select", "aten::unsqueeze"
_RECURRENT = re.compile(r"lstm|gru|rnn", re.IGNORECASE)


class RepeatedCalls(Record, frozen=True, eq=False):
    """The calls of all loops over the items of a batch, one element per call. A call is the interval [begin, end) in ns
    on the host's clock. `first` is True for the first call of each loop."""

    begin: Ints
    end: Ints
    first: Bools

    @property
    def others(self) -> Spans:
        """The time of all calls except the first call of each loop. If one call computes the whole batch, these calls
        are not needed."""
        return union(self.begin[~self.first], self.end[~self.first])


def unbatched_calls(recording: Recording) -> Measure | Missing:
    """Number of calls per step that loops over the items of a batch make (see `repeated_calls`)."""
    calls = repeated_calls(recording)
    return with_example(len(calls.begin) / len(recording.steps), "count", "step", calls.begin, calls.end)


def idle_in_unbatched_calls(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle during the calls of loops over the items of a batch (see
    `repeated_calls`). The first call of each loop is left out."""
    others = repeated_calls(recording).others
    idle = int(recording.idle.covered(others.starts, others.ends).sum())
    return Measure(idle / recording.account.window, "share", "window", len(others))


@memoized
def repeated_calls(recording: Recording) -> RepeatedCalls:
    """Returns the calls of loops over the items of a batch, in order of time.

    A loop is a sequence of top-level operators of the main thread (equal in names and shapes) that repeats at least
    MIN_CALLS times in a row within one step. Layers of a model repeat too, so a loop must also select one item and make
    a batch of size one from it (aten::select, then aten::unsqueeze). Loops with recurrent operators are left out,
    because each call needs the result of the call before.
    """
    events, rows = recording.trace.events, top_level(recording)
    names, makes_batch = recording.trace.names, batches_of_one(recording)
    recurrent = name_matches(names, events.name[rows], lambda text: _RECURRENT.search(text) is not None)
    begin, end, first = [], [], []
    for at, period, calls in repeats(recording):
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


def batches_of_one(recording: Recording) -> Bools:
    """Returns a mask of the operators of `top_level` that select an item, of which the next one makes a batch."""
    names, name = recording.trace.names, recording.trace.events.name[top_level(recording)]
    selects, of_one = (name_matches(names, name, each.__eq__) for each in (SELECTS, _BATCH_OF_ONE))
    found: Bools = selects & np.append(of_one[1:], False)[: len(name)]
    return found


@memoized
def top_level(recording: Recording) -> Ints:
    """Returns the event rows of the main thread's operators in the host's steps that are not inside another operator,
    in order of time."""
    events, rows = recording.trace.events, recording.trace.rows(Kind.CPU_OP)
    rows = rows[(events.thread[rows] == recording.host.main_thread) & in_host_steps(recording, events.start[rows])]
    rows = rows[np.lexsort((-events.end[rows], events.start[rows]))]
    reach = np.maximum.accumulate(events.end[rows])
    top: Ints = rows[np.append(True, events.start[rows][1:] >= reach[:-1])[: len(rows)]]
    return top


LONGEST_PAUSE_NS = 2_000_000
"""Longest time between two operators of a loop that counts as time of the loop. A choice."""


def loop_time(recording: Recording, rows: Rows) -> Spans:
    """Returns the time of loops whose operators are `rows` of `trace.events`, with the short pauses between them, in
    which the Python of the loop runs."""
    events, rows = recording.trace.events, rows[np.argsort(recording.trace.events.start[rows], kind="stable")]
    starts, ends = events.start[rows], events.end[rows]
    following = np.append(starts[1:], np.iinfo(np.int64).max)[: len(rows)]
    return union(starts, np.where(following - ends < LONGEST_PAUSE_NS, following, ends))


@memoized
def repeats(recording: Recording) -> tuple[tuple[int, int, int], ...]:
    """Returns the repetitions in the operators of `top_level`, as (position, operators, number of repetitions): the
    operators have equal names and shapes, and run in one step. No operator is in two of them."""
    events, rows = recording.trace.events, top_level(recording)
    step = host_step_of(recording, events.start[rows])
    # The index of a selected item is among the recorded inputs.
    selects = name_matches(recording.trace.names, events.name[rows], SELECTS.__eq__)
    equal = np.stack((events.name[rows], np.where(selects, 0, events.signature[rows]), step))
    keys = np.unique(equal, axis=1, return_inverse=True)[1].reshape(-1)
    return tuple(_repeats(np.asarray(keys, np.int64)))


def _repeats(keys: Ints) -> Iterator[tuple[int, int, int]]:
    """Yields the repetitions in `keys`, which has one number per operator (equal operators have equal numbers), as
    (position, period, number of repetitions). The yielded parts of `keys` do not overlap. Short periods come first."""
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
