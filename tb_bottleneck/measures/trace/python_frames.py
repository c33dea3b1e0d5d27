"""The lines of the user's program that a thread runs, from recorded Python frames."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans
from tb_bottleneck.trace.frame_owner import is_user_frame
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import Nesting, nest
from tb_bottleneck.trace.table import Ints, Rows

# The number of evenly spread times at which frames are looked up: a line with 1 % of the time is found 20 times.
SAMPLES = 2_000


@dataclass(frozen=True, eq=False)
class Frames:
    """The Python frames of one thread. `user_row` is the innermost enclosing frame of the user for each row, or -1."""

    rows: Rows
    nesting: Nesting
    user_row: Ints

    def at(self, times: Ints) -> Ints:
        """Return the user's innermost line at each time, as a row of the events; -1 if there is none."""
        if not len(self.rows):
            return np.full(len(times), -1, np.int64)
        inside, row = self.nesting.innermost(times)
        line = np.where(inside, self.user_row[row], -1)
        return np.asarray(np.where(line >= 0, self.rows[np.maximum(line, 0)], -1), np.int64)


def frames_of(recording: Recording, thread: int) -> Frames:
    """Return the frames of a thread (a row of the trace's threads)."""
    trace = recording.trace
    rows = trace.rows(Kind.PYTHON)
    rows = rows[trace.events.thread[rows] == thread]
    nesting = nest(trace.events.start[rows], trace.events.end[rows])
    of_user = name_matches(trace.names, trace.events.name[rows], is_user_frame)
    enclosing = np.where(of_user, np.arange(len(rows)), nesting.parent)
    while not np.array_equal(enclosing[enclosing], enclosing):
        enclosing = enclosing[enclosing]
    return Frames(rows, nesting, np.where(of_user[enclosing], enclosing, -1) if len(rows) else enclosing)


def lines_in(recording: Recording, thread: int, spans: Spans) -> list[tuple[str, float]]:
    """Return the user's lines that ran in these spans of a thread, longest first, each with its share of their time."""
    return _by_share(recording, frames_of(recording, thread).at(_times_in(spans)))


def blocks_in(recording: Recording, thread: int, spans: Spans) -> list[tuple[str, float]]:
    """Return the innermost record_function blocks in these spans, longest first, each with its share of their time."""
    return _by_share(recording, blocks_at(recording, thread, _times_in(spans)))


def blocks_at(recording: Recording, thread: int, times: Ints) -> Ints:
    """Return the innermost record_function block of a thread at each time, as a row of the events; -1 if there is none.

    A program with record_function blocks need not record frames.
    """
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION)
    rows = rows[trace.events.thread[rows] == thread]
    rows = rows[~name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith("ProfilerStep"))]
    if not len(rows):
        return np.full(len(times), -1, np.int64)
    inside, row = nest(trace.events.start[rows], trace.events.end[rows]).innermost(times)
    return np.asarray(np.where(inside, rows[row], -1), np.int64)


def _times_in(spans: Spans) -> Ints:
    """Return SAMPLES times spread evenly over the spans."""
    if not spans.total():
        return np.empty(0, np.int64)
    offsets = (np.arange(SAMPLES) + 0.5) / SAMPLES * spans.total()
    before = np.concatenate(([0], np.cumsum(spans.ends - spans.starts)))
    span = np.minimum(np.searchsorted(before, offsets, side="right") - 1, len(spans) - 1)
    return np.asarray(spans.starts[span] + offsets - before[span], np.int64)


def _by_share(recording: Recording, rows: Ints) -> list[tuple[str, float]]:
    """Return the names of these rows of the events, most common first, each with its share of them; -1 is no row."""
    trace = recording.trace
    counts = Counter(trace.names[trace.events.name[row]] for row in rows[rows >= 0].tolist())
    return [(cut(name), count / len(rows)) for name, count in counts.most_common()]
