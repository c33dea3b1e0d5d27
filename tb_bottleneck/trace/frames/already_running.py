"""Python functions that already ran when the recording began, and therefore have a wrong line."""

import numpy as np

from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, by_thread
from tb_bottleneck.trace.trace import Trace

# The profiler records the functions that already run in one go, 1 to 6 us after one another, before other events of the
# host (one public recording has a launch 13 us before them).
_ONE_GO_NS = 20_000


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
        start, end = events.start[rows], events.end[rows]
        nested = (np.diff(start) <= _ONE_GO_NS) & (end[1:] <= end[:-1])
        depth = 1 + int(np.argmin(np.append(nested, False)))
        mask[rows[:depth]] = start[0] <= latest
    return mask
