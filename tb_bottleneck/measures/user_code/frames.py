"""The Python frames of each thread; for each frame, the user's innermost frame and the innermost module around it."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.frames import already_running_frames, frame_parts, frame_without_line, is_user_frame
from tb_bottleneck.trace.kernel_names import name_matches, passing_names
from tb_bottleneck.trace.kinds import MODULE, Kind
from tb_bottleneck.trace.nesting import Nesting, nest
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# They belong to the function that they are written in; since Python 3.12 most of them have no frame of their own.
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
# Rows that are looked at together: a file may have millions, and few of them run at a time that is asked for.
_BLOCK = 64
_PART = 1 << 16  # a multiple of it
# Python's own limit of nested calls (sys.getrecursionlimit); the nesting of a file has none.
MAX_DEPTH = 1_000
# Annotations of torch itself; all others are the program's, or those of a framework that it uses.
_TORCH_BLOCKS = (
    MODULE,
    "ProfilerStep",
    "Optimizer.",
    "enumerate(Data",
    "autograd::",
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "TorchDynamo",
    "DistributedDataParallel.",
    "FullyShardedDataParallel.",
    "nccl:",
    "gloo:",
)


class Enclosing(Record, frozen=True, eq=False):
    """The nesting of the rows (events) of one thread that run at given times. There is at least one row."""

    nesting: Nesting
    rows: Rows  # of the events
    found: tuple[Ints, ...]  # per kind of enclosing row that was asked for: the row of the events, or -1

    def at(self, times: Ints) -> tuple[Ints, ...]:
        """Returns arrays of event rows, one entry per time: the innermost row, then per kind in `found` the innermost
        row of this kind around it. An entry is -1 if there is none."""
        inside, row = self.nesting.innermost(times)
        return tuple(np.where(inside, column[row], -1) for column in (self.rows, *self.found))

    def called(self, times: Ints) -> Ints:
        """Returns per time the event row that the innermost row of the first kind in `found` calls; -1 for none.

        A row of the last kind is a part of the row of the first kind around it, so what it calls counts as called by
        that row.
        """
        inside, row = self.nesting.innermost(times)
        parent, is_caller = self.nesting.parent, self.found[0] == self.rows
        calls = is_caller | (self.found[-1] == self.rows)
        below = _nearest(parent, calls | calls[parent])
        known = inside & ~is_caller[row] & (self.found[0][row] >= 0)
        return np.where(known, self.rows[below[row]], -1)


class EnclosingByThread:
    """Rows of a trace by thread. `of` nests only the rows that run at the given times, because a file has many rows.

    `tests` select, by name, the kinds of rows in `Enclosing.found`.
    """

    def __init__(self, trace: Trace, rows: Rows, *tests: Callable[[str], bool]) -> None:
        events = self._events = trace.events
        self._rows = {thread: packed(own) for thread, own in by_thread(rows, events.thread).items()}
        self._blocks = {thread: _blocks(events, own) for thread, own in self._rows.items()}
        self._chosen = [passing_names(trace.names, events.name[rows], test) for test in tests]

    def of(self, thread: int, times: Ints) -> Enclosing | None:
        """Returns the rows of `thread` that run at one of `times` (ns), or None if there are none."""
        if thread not in self._rows:
            return None
        events, rows = self._events, self._rows[thread]
        near = (_running(*self._blocks[thread], times)[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        rows = rows[near[near < len(rows)]]
        rows = rows[_running(events.start[rows], events.end[rows], times)]
        if not len(rows):
            return None
        nesting = nest(events.start[rows], events.end[rows])
        columns = [_nearest(nesting.parent, chosen[events.name[rows]]) for chosen in self._chosen]
        found = (np.where(column >= 0, rows[np.maximum(column, 0)], -1) for column in columns)
        return Enclosing(nesting, rows, tuple(found))


def _blocks(events: Events, rows: Rows) -> tuple[Ints, Ints]:
    """Returns the first start and the last end of each block of _BLOCK rows of one thread."""
    ends = []
    for first in range(0, len(rows), _PART):
        end = events.end[rows[first : first + _PART]]
        ends.append(np.maximum.reduceat(end, np.arange(0, len(end), _BLOCK)))
    return events.start[rows[::_BLOCK]], np.concatenate(ends)


def _running(start: Ints, end: Ints, times: Ints) -> Rows:
    """Returns the rows, sorted by start, that run at one of the times."""
    times = np.sort(times)
    before = np.searchsorted(start, times, side="right")  # per time: the rows that have started
    following = np.append(times, np.iinfo(np.int64).max)  # per group of rows: the first time that is not before them
    return np.flatnonzero(np.repeat(following, np.diff(before, prepend=0, append=len(start))) < end)


def ancestors(frames: Enclosing, row: int) -> list[int]:
    """Returns the event row `row` and at most MAX_DEPTH rows that enclose it, outermost first."""
    at = int(np.searchsorted(frames.rows, row))
    chain = [at]
    while frames.nesting.parent[at] != at and len(chain) <= MAX_DEPTH:
        at = int(frames.nesting.parent[at])
        chain.append(at)
    return [int(frames.rows[at]) for at in reversed(chain)]


@memoized
def frames_by_thread(recording: Recording) -> EnclosingByThread:
    """Returns the Python frames by thread. The kinds in `Enclosing.found` are the user's functions, modules, and the
    user's comprehensions."""
    trace = recording.trace
    kinds = (is_user_function, lambda name: name.startswith(MODULE), is_user_comprehension)
    return EnclosingByThread(trace, trace.rows(Kind.PYTHON), *kinds)


@memoized
def already_running(recording: Recording) -> Bools:
    """Returns the mask of the events that are Python functions which already ran when the recording began."""
    return already_running_frames(recording.trace)


def frame_text(recording: Recording, row: int, line: int = 0) -> str:
    """Returns the name of the Python frame at event row `row`, with `line` instead of the function's line if not 0.

    The line is left out if it is wrong, as for functions that already ran when the recording began.
    """
    name = recording.trace.names[recording.trace.events.name[row]]
    if line:
        file, _, function = frame_parts(name)
        return f"{file}({line}): {function}"
    return frame_without_line(name) if already_running(recording)[row] else name


@memoized
def blocks_by_thread(recording: Recording) -> EnclosingByThread:
    """Returns the record_function blocks by thread, without the blocks of torch itself."""
    trace, rows = recording.trace, recording.trace.rows(Kind.ANNOTATION)
    return EnclosingByThread(trace, rows[~name_matches(trace.names, trace.events.name[rows], is_torch_block)])


@memoized
def marks_by_thread(recording: Recording) -> EnclosingByThread | None:
    """Returns the marks of modules by thread (monitor/capture/module_marks.py), or None if there is none."""
    trace, rows = recording.trace, recording.trace.rows(Kind.ANNOTATION)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(MODULE))]
    return EnclosingByThread(trace, rows) if len(rows) else None


def is_user_function(frame: str) -> bool:
    """Returns True if a frame is a function of the user's program, but not a comprehension."""
    return is_user_frame(frame) and not frame.endswith(_COMPREHENSIONS)


def is_user_comprehension(frame: str) -> bool:
    """Returns True if a frame is a comprehension of the user's program."""
    return is_user_frame(frame) and frame.endswith(_COMPREHENSIONS)


def is_torch_block(name: str) -> bool:
    """Returns True if `name` is a block that torch marks in a trace, such as a part of a compilation."""
    return name.startswith(_TORCH_BLOCKS) or name.endswith("(dynamo_timed)")


def _nearest(parent: Ints, chosen: Bools) -> Ints:
    """Returns per row the nearest chosen row: the row itself or the innermost chosen row around it; -1 for none."""
    nearest = np.where(chosen, np.arange(len(parent)), parent)
    while not np.array_equal(nearest[nearest], nearest):
        nearest = nearest[nearest]
    return np.asarray(np.where(chosen[nearest], nearest, -1) if len(nearest) else nearest, np.int64)
