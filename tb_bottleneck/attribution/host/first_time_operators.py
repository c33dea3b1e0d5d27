"""Operators that do first-time work: one call of a name takes far longer by itself than all others.

TorchScript compiles a function in the call that needs it, and libraries create handles and tune inside an operator. No
row of its own shows that; only the time that no inner operator and no runtime call takes.
"""

import numpy as np

from tb_bottleneck.intervals import EMPTY, Spans, merge, subtract, union
from tb_bottleneck.order_statistics import distinct_values
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Between the calls of an operator pass 1 to 80 us in thirty public recordings, and up to 3 ms if the machine interrupts
# it. All single pauses above 10 ms compiled code or loaded a library.
FIRST_TIME_NS = 10_000_000
# Recurring calls of one name may differ by the factor of 3 from which the method calls a step an outlier. First-time
# work has to differ by more.
OUTLIER = 5


def first_time_spans(trace: Trace, threads: Ints, is_mark: Bools) -> Spans:
    """Returns the long pauses in operators that do first-time work on these threads. `is_mark` marks names of phases.

    An operator counts if it makes a runtime call: others compute on the host (host_operators.py). It does
    not count if Python frames were recorded inside: then they explain its time.
    """
    events = trace.events
    if not len(trace.calls) or not len(trace.all_device_ops):
        return EMPTY
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[~is_mark[events.name[rows]]]
    long = rows[events.duration[rows] >= FIRST_TIME_NS]
    spans = EMPTY
    for thread in np.intersect1d(threads, distinct_values(events.thread[long]), assume_unique=True).tolist():
        spans = merge(spans, _of_thread(trace, rows[events.thread[rows] == thread], thread))
    return spans


def _of_thread(trace: Trace, rows: Rows, thread: int) -> Spans:
    events, spans = trace.events, EMPTY
    inner = trace.rows(Kind.CPU_OP, Kind.CALL)
    inner = inner[events.thread[inner] == thread]
    own = nest(events.start[inner], events.end[inner]).self_times()[np.searchsorted(inner, rows)]
    long = np.flatnonzero(own >= FIRST_TIME_NS).tolist()
    if not long:
        return spans
    calls, frames = (_starts(trace, kind, thread) for kind in (Kind.CALL, Kind.PYTHON))
    for at in long:
        begin, end = int(events.start[rows[at]]), int(events.end[rows[at]])
        same = (events.name[rows] == events.name[rows[at]]) & (np.arange(len(rows)) != at)
        recurs = own[at] < OUTLIER * own[same].max(initial=0)
        if recurs or not _any_between(calls, begin, end) or _any_between(frames, begin, end):
            continue
        others = inner[(events.start[inner] >= begin) & (events.end[inner] <= end) & (inner != rows[at])]
        around = others[(events.start[others] == begin) & (events.end[others] == end) & (others < rows[at])]
        others = np.setdiff1d(others, around, assume_unique=True)
        alone = subtract(union(np.array([begin]), np.array([end])), union(events.start[others], events.end[others]))
        is_pause = alone.ends - alone.starts >= FIRST_TIME_NS
        spans = merge(spans, Spans(alone.starts[is_pause], alone.ends[is_pause]))
    return spans


def _starts(trace: Trace, kind: Kind, thread: int) -> Ints:
    rows = trace.rows(kind)
    starts: Ints = trace.events.start[rows[trace.events.thread[rows] == thread]]
    return starts


def _any_between(times: Ints, begin: int, end: int) -> bool:
    return bool(np.searchsorted(times, end) > np.searchsorted(times, begin))
