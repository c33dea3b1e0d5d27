"""Which line of the user's program a thread was in, where Python frames were recorded."""

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import Nesting, nest
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Times at which frames are looked up, spread evenly: a line that takes 1 % of them is seen 20 times.
SAMPLES = 2_000
# The profiler names files from where they were imported: a library's begin with the library's own name.
_NOT_THE_USERS = {*sys.stdlib_module_names, "torch", "torchvision", "numpy", "PIL", "site"}
# The monitor's own hooks stand around the backward pass of what it watches, wherever it was installed.
_LIBRARIES = ("site-packages/", "dist-packages/", "tb_bottleneck/monitor/")


@dataclass(frozen=True, eq=False)
class Frames:
    """The Python frames of one thread. `users` is for each row the innermost user's own around it, or -1."""

    rows: Rows
    nesting: Nesting
    users: Ints

    def at(self, times: Ints) -> Ints:
        """For each time the user's innermost line, as a row of the events; -1 where there is none."""
        if not len(self.rows):
            return np.full(len(times), -1, np.int64)
        found, row = self.nesting.innermost(times)
        line = np.where(found, self.users[row], -1)
        return np.asarray(np.where(line >= 0, self.rows[np.maximum(line, 0)], -1), np.int64)


def frames_of(recording: Recording, thread: int) -> Frames:
    """The frames of a thread, a row of the trace's threads."""
    trace = recording.trace
    rows = trace.rows(Kind.PYTHON)
    rows = rows[trace.events.thread[rows] == thread]
    nesting = nest(trace.events.start[rows], trace.events.end[rows])
    users = _users(trace)[trace.events.name[rows]]
    own = np.arange(len(rows))
    near = np.where(users, own, nesting.parent)
    while not np.array_equal(near[near], near):
        near = near[near]
    return Frames(rows, nesting, np.where(users[near], near, -1) if len(rows) else near)


def lines_in(recording: Recording, thread: int, spans: Spans) -> list[tuple[str, float]]:
    """The user's lines that ran in these spans of a thread, the longest first, each with its share of their time."""
    return _longest(recording, frames_of(recording, thread).at(_times_in(spans)))


def blocks_in(recording: Recording, thread: int, spans: Spans) -> list[tuple[str, float]]:
    """The same for the innermost record_function block around."""
    return _longest(recording, blocks_at(recording, thread, _times_in(spans)))


def blocks_at(recording: Recording, thread: int, times: Ints) -> Ints:
    """For each time the innermost record_function block of a thread, as a row of the events; -1 where there is none.

    Who marks their program need not record its frames.
    """
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION)
    rows = rows[trace.events.thread[rows] == thread]
    rows = rows[~name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith("ProfilerStep"))]
    if not len(rows):
        return np.full(len(times), -1, np.int64)
    found, row = nest(trace.events.start[rows], trace.events.end[rows]).innermost(times)
    return np.asarray(np.where(found, rows[row], -1), np.int64)


def _times_in(spans: Spans) -> Ints:
    """SAMPLES times spread evenly over the spans."""
    if not spans.total():
        return np.empty(0, np.int64)
    offsets = (np.arange(SAMPLES) + 0.5) / SAMPLES * spans.total()
    before = np.concatenate(([0], np.cumsum(spans.ends - spans.starts)))
    span = np.minimum(np.searchsorted(before, offsets, side="right") - 1, len(spans) - 1)
    return np.asarray(spans.starts[span] + offsets - before[span], np.int64)


def _longest(recording: Recording, rows: Ints) -> list[tuple[str, float]]:
    """The names of these rows of the events, the commonest first, each with its share of them; -1 is none."""
    trace = recording.trace
    seen = Counter(trace.names[trace.events.name[row]] for row in rows[rows >= 0].tolist())
    return [(cut(name), count / len(rows)) for name, count in seen.most_common()]


def is_user_frame(frame: str) -> bool:
    """Whether a Python frame is the program's own: of a file that neither Python nor a library below it brings."""
    if ".py(" not in frame or frame.startswith("<") or any(part in frame for part in _LIBRARIES):
        return False
    top = frame.replace("\\", "/").split("/", 1)[0].split(".py(", 1)[0]
    return top not in _NOT_THE_USERS


def _users(trace: Trace) -> Bools:
    return np.array([is_user_frame(name) for name in trace.names], np.bool_)
