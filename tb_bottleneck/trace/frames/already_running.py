"""Python functions that already ran when the recording began, and therefore have a wrong line."""

import numpy as np

from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# The profiler records the functions that already run in one go, 1 to 6 us after one another, before other events of the
# host (one public recording has a launch 13 us before them).
_ONE_GO_NS = 20_000
# Deeper stacks are rare, and a thread may have millions of frames.
_USUAL_DEPTH = 1024


def already_running_frames(trace: Trace) -> Bools:
    """Returns the mask of the events that are Python functions which already ran when the recording began.

    The line of these is the one that ran then, in most programs the call of `prof.step()` (pytorch
    torch/csrc/autograd/profiler_python.cpp, recordPyCall with the current line of each frame of the stack).
    """
    events, mask = trace.events, np.zeros(len(trace.events), np.bool_)
    others = trace.rows(Kind.CPU_OP, Kind.ANNOTATION, Kind.CALL)
    if not len(others):
        return mask
    latest = int(events.start[others[0]]) + _ONE_GO_NS
    for rows in by_thread(trace.rows(Kind.PYTHON), events.thread).values():
        if events.start[rows[0]] <= latest:
            mask[rows[: _depth(events, rows)]] = True
    return mask


def _depth(events: Events, rows: Rows) -> int:
    """Returns how many of the first rows began in one go, each inside the one before it."""
    for count in (_USUAL_DEPTH, len(rows)):
        start, end = events.start[rows[:count]], events.end[rows[:count]]
        nested = (np.diff(start) <= _ONE_GO_NS) & (end[1:] <= end[:-1])
        if not nested.all():
            return 1 + int(np.argmin(nested))
    return len(rows)
