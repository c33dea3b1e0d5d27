"""The Python frames of each thread, and for each frame, the innermost frame of the user's program and the innermost
module around it.

A frame is one call of a Python function in a trace; it is also an event. Modules are layers of a model
(torch.nn.Module).
"""

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

# A comprehension belongs to the function in which it is written. Since Python 3.12, most comprehensions have no frame.
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
# Number of rows in a block. Blocks in which no row runs at a given time are skipped: a file may have millions of rows,
# and few of them run at the given times.
_BLOCK = 64
_PART = 1 << 16  # number of rows that are read together: a multiple of _BLOCK
# Python's own limit of nested calls (sys.getrecursionlimit). The nesting in a file has no limit.
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
    """The events of one thread that run at given times, and how they are nested. There is at least one event."""

    nesting: Nesting
    rows: Rows  # event rows
    found: tuple[Ints, ...]  # per kind: for each event the row of the innermost event of this kind around it, or -1

    def at(self, times: Ints) -> tuple[Ints, ...]:
        """Returns arrays with one event row for each of `times` (ns): first the innermost event that runs, then, for
        each kind in `found`, the innermost event of this kind around it. An element is -1 if there is none."""
        inside, row = self.nesting.innermost(times)
        return tuple(np.where(inside, column[row], -1) for column in (self.rows, *self.found))

    def called(self, times: Ints) -> Ints:
        """Returns for each of `times` (ns) the row of the event that the caller calls at this time; -1 if the caller
        calls nothing. The caller is the innermost event of the first kind in `found` that runs.

        An event of the last kind (in `frames_by_thread`, a comprehension) counts as a part of the caller around it, so
        calls that it makes count as calls of the caller.
        """
        inside, row = self.nesting.innermost(times)
        parent, is_caller = self.nesting.parent, self.found[0] == self.rows
        calls = is_caller | (self.found[-1] == self.rows)
        below = _nearest(parent, calls | calls[parent])
        known = inside & ~is_caller[row] & (self.found[0][row] >= 0)
        return np.where(known, self.rows[below[row]], -1)


class EnclosingByThread:
    """Events of a trace by thread. `rows` are their event rows. `of` computes the nesting only of events that run at
    given times, because a file may have millions of events.

    Each of `tests` takes the name of an event and selects one kind of events for `Enclosing.found`.
    """

    def __init__(self, trace: Trace, rows: Rows, *tests: Callable[[str], bool]) -> None:
        events = self._events = trace.events
        self._rows = {thread: packed(own) for thread, own in by_thread(rows, events.thread).items()}
        self._blocks = {thread: _blocks(events, own) for thread, own in self._rows.items()}
        self._chosen = [passing_names(trace.names, events.name[rows], test) for test in tests]

    def of(self, thread: int, times: Ints) -> Enclosing | None:
        """Returns the events of `thread` that run at one of `times` (ns), or None if there are none."""
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
    """Returns the first start and the last end (ns) of each block of _BLOCK events. `rows` are the event rows of one
    thread."""
    ends = []
    for first in range(0, len(rows), _PART):
        end = events.end[rows[first : first + _PART]]
        ends.append(np.maximum.reduceat(end, np.arange(0, len(end), _BLOCK)))
    return events.start[rows[::_BLOCK]], np.concatenate(ends)


def _running(start: Ints, end: Ints, times: Ints) -> Rows:
    """Returns the indices of the intervals from start[i] to end[i] that contain one of `times`. `start` must be sorted.
    All are in ns."""
    times = np.sort(times)
    before = np.searchsorted(start, times, side="right")  # per time: the rows that have started
    following = np.append(times, np.iinfo(np.int64).max)  # per group of rows: the first time that is not before them
    return np.flatnonzero(np.repeat(following, np.diff(before, prepend=0, append=len(start))) < end)


def ancestors(frames: Enclosing, row: int) -> list[int]:
    """Returns event rows, outermost first: those that enclose the event row `row` (the MAX_DEPTH innermost at most),
    then `row` itself. `row` must be in `frames.rows`."""
    at = int(np.searchsorted(frames.rows, row))
    chain = [at]
    while frames.nesting.parent[at] != at and len(chain) <= MAX_DEPTH:
        at = int(frames.nesting.parent[at])
        chain.append(at)
    return [int(frames.rows[at]) for at in reversed(chain)]


@memoized
def frames_by_thread(recording: Recording) -> EnclosingByThread:
    """Returns the Python frames by thread. The three kinds in `Enclosing.found` are the functions of the user's
    program, modules, and the comprehensions of the user's program."""
    trace = recording.trace
    kinds = (is_user_function, lambda name: name.startswith(MODULE), is_user_comprehension)
    return EnclosingByThread(trace, trace.rows(Kind.PYTHON), *kinds)


@memoized
def already_running(recording: Recording) -> Bools:
    """Returns a mask of the events: True for Python functions that already ran when the recording began."""
    return already_running_frames(recording.trace)


def frame_text(recording: Recording, row: int, line: int = 0) -> str:
    """Returns the name of the Python frame at the event row `row`. If `line` is not 0, it replaces the line of the
    function.

    Without `line`, the recorded line of a function that already ran when the recording began is left out, because this
    line is wrong.
    """
    name = recording.trace.names[recording.trace.events.name[row]]
    if line:
        file, _, function = frame_parts(name)
        return f"{file}({line}): {function}"
    return frame_without_line(name) if already_running(recording)[row] else name


@memoized
def blocks_by_thread(recording: Recording) -> EnclosingByThread:
    """Returns the record_function blocks of the program by thread, without the blocks that torch itself makes."""
    trace, rows = recording.trace, recording.trace.rows(Kind.ANNOTATION)
    return EnclosingByThread(trace, rows[~name_matches(trace.names, trace.events.name[rows], is_torch_block)])


@memoized
def marks_by_thread(recording: Recording) -> EnclosingByThread | None:
    """Returns the annotations of modules that the monitor makes (monitor/capture/module_marks.py) by thread, or None if
    there are none."""
    trace, rows = recording.trace, recording.trace.rows(Kind.ANNOTATION)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(MODULE))]
    return EnclosingByThread(trace, rows) if len(rows) else None


def is_user_function(frame: str) -> bool:
    """Returns True if `frame`, the name of a frame, is a function of the user's program, but not a comprehension."""
    return is_user_frame(frame) and not frame.endswith(_COMPREHENSIONS)


def is_user_comprehension(frame: str) -> bool:
    """Returns True if `frame`, the name of a frame, is a comprehension of the user's program."""
    return is_user_frame(frame) and frame.endswith(_COMPREHENSIONS)


def is_torch_block(name: str) -> bool:
    """Returns True if `name` is the name of a block that torch itself makes in a trace, such as a phase of a
    compilation."""
    return name.startswith(_TORCH_BLOCKS) or name.endswith("(dynamo_timed)")


def _nearest(parent: Ints, chosen: Bools) -> Ints:
    """Returns for each event i the nearest event that `chosen` selects: i itself, or else the innermost selected event
    that encloses i; -1 if there is none. Events are given by their index. `parent` has for each event the event that
    directly encloses it, or the event itself if there is none."""
    nearest = np.where(chosen, np.arange(len(parent)), parent)
    while not np.array_equal(nearest[nearest], nearest):
        nearest = nearest[nearest]
    return np.asarray(np.where(chosen[nearest], nearest, -1) if len(nearest) else nearest, np.int64)
