"""The time in which optimizers run, from their annotations, without the closures and hooks that they call.

`Optimizer.step#…` encloses all of `step(closure)`. A closure may hold the forward and the backward pass, as it does in
Lightning, and that time is not the optimizer's. Recorded Python frames show what the step calls. Without them, the
backward pass shows that there is a closure: it begins with the step and ends with the backward pass.
"""

import numpy as np

from tb_bottleneck.intervals import Spans, subtract, union
from tb_bottleneck.trace.frame_owner import FrameOwner, frame_owner
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

OPTIMIZER, OPTIMIZER_STEP = "Optimizer.", "Optimizer.step#"
BACKWARD = "autograd::engine::evaluate_function"


def optimizer_time(trace: Trace, prefix: str) -> Spans:
    """Returns when optimizers ran: the time of the annotations with this prefix, without closures and hooks."""
    return optimizer_time_of(trace, trace.rows(Kind.ANNOTATION, Kind.CPU_OP), prefix)


def optimizer_time_of(trace: Trace, rows: Rows, prefix: str) -> Spans:
    """Returns the time of those of the rows that are annotations with this prefix, without closures and hooks."""
    events = trace.events
    rows = rows[name_matches(trace.names, events.name[rows], lambda name: name.startswith(prefix))]
    steps = rows[name_matches(trace.names, events.name[rows], lambda name: name.startswith(OPTIMIZER_STEP))]
    others = rows[~np.isin(rows, steps)]
    own = subtract(union(events.start[steps], events.end[steps]), _called(trace, steps))
    return union(np.append(own.starts, events.start[others]), np.append(own.ends, events.end[others]))


def _called(trace: Trace, steps: Rows) -> Spans:
    """Returns the time of the closures and hooks in the annotations of optimizer steps."""
    events = trace.events
    backward = trace.rows(Kind.CPU_OP)
    backward = backward[name_matches(trace.names, events.name[backward], lambda name: name.startswith(BACKWARD))]
    begins, ends = [], []
    for thread in np.unique(events.thread[steps]).tolist():
        own = steps[events.thread[steps] == thread]
        frames = _frames_in(trace, thread, own)
        called = frames[_are_callbacks(trace, frames, events.start[backward])]
        framed = _counts(events.start[frames], events.start[own], events.end[own]) > 0
        closures = own[~framed]
        begins += [events.start[called], events.start[closures]]
        ends += [events.end[called], _last_end(events.start[closures], events.end[closures], events.end[backward])]
    return union(np.concatenate(begins), np.concatenate(ends)) if begins else union([], [])


def _frames_in(trace: Trace, thread: int, steps: Rows) -> Rows:
    """Returns the Python functions of files that a thread calls in its optimizer steps."""
    events, rows = trace.events, trace.rows(Kind.PYTHON)
    inside = union(events.start[steps], events.end[steps])
    rows = rows[(events.thread[rows] == thread) & inside.contains(events.start[rows])]
    functions = name_matches(trace.names, events.name[rows], lambda name: frame_owner(name) is not FrameOwner.NONE)
    return np.asarray(rows[functions], np.intp)


def _are_callbacks(trace: Trace, frames: Rows, backward: Ints) -> Bools:
    """Returns a mask of the frames that are closures or hooks, or run in them.

    The optimizer's own functions are those of torch and Python, and all functions that a `step` outside torch calls,
    unless the backward pass runs in them.
    """
    events, names = trace.events, trace.names
    foreign = name_matches(names, events.name[frames], _is_foreign)
    is_step = name_matches(names, events.name[frames], lambda name: name.endswith("): step"))
    steps = frames[foreign & is_step]
    in_step = union(events.start[steps], events.end[steps]).contains(events.start[frames])
    has_backward = _counts(np.sort(backward), events.start[frames], events.end[frames]) > 0
    return np.asarray(foreign & ~is_step & (~in_step | has_backward), np.bool_)


def _is_foreign(frame: str) -> bool:
    return frame_owner(frame) in (FrameOwner.USER, FrameOwner.PACKAGE)


def _counts(times: Ints, begin: Ints, end: Ints) -> Ints:
    """Returns how many of the sorted times are in each [begin, end)."""
    return np.asarray(np.searchsorted(times, end, side="left") - np.searchsorted(times, begin, side="left"), np.int64)


def _last_end(begin: Ints, end: Ints, backward: Ints) -> Ints:
    """Returns the last end of a backward operator in each (begin, end]; `begin` where there is none."""
    ends = np.sort(backward)
    last = np.searchsorted(ends, end, side="right") - 1
    if not len(ends):
        return begin
    return np.asarray(np.where(last >= 0, np.maximum(ends[np.maximum(last, 0)], begin), begin), np.int64)
