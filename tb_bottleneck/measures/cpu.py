"""The account of a run on the CPU: there the CPU is the device, and its timeline is that of the main thread.

Time inside an operator that calls no other is the work itself; what its callers spend beside it is dispatching. Pauses
between operators belong to dispatching while they are short, and to Python beyond that (measures/doing.py).
"""

import numpy as np

from tb_bottleneck.intervals import Spans, clip, intersect, merge, subtract, union
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.measures.doing import Doing, HostTimeline
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Rows
from tb_bottleneck.trace.trace import Trace

# A leaf operator shorter than this spends most of it on being called: dispatching one costs 1 to 5 us.
DISPATCH_SIZED_NS = 5_000

_REGIME_OF_WORK = {"contraction": "compute", "collective": "communication"}
_REGIME_OF_DOING = {
    Doing.LOAD: "input",
    Doing.INTERRUPT: "interruption",
    Doing.START: "interruption",
    Doing.ALLOCATE: "allocator",
    Doing.WAIT: "sync",
    Doing.COPY: "transfer",
    Doing.DISPATCH: "launch",
    Doing.OTHER: "host",
}


def cpu_time_by_regime(trace: Trace, steps: Steps, host: HostTimeline) -> dict[str, int]:
    """Nanoseconds of the window by regime; they sum to the window."""
    window = Spans(np.array([steps.begin]), np.array([steps.end]))
    thread = host.main_thread
    if thread is None:
        return {"unexplained": window.total()}
    doings = {doing: clip(spans, steps.begin, steps.end) for doing, spans in host.doings(thread).items()}
    known = merge(*doings.values())
    doings[Doing.OTHER] = merge(doings[Doing.OTHER], subtract(window, known))
    ns = {regime: worked.total() for regime, worked in _work(trace, thread, doings[Doing.DISPATCH]).items()}
    worked_in_all = sum(ns.values())
    for doing, spans in doings.items():
        regime = _REGIME_OF_DOING[doing]
        dispatched_only = spans.total() - (worked_in_all if doing is Doing.DISPATCH else 0)
        ns[regime] = ns.get(regime, 0) + dispatched_only
    return ns


def _work(trace: Trace, thread: int, dispatching: Spans) -> dict[str, Spans]:
    """The time of leaf operators inside `dispatching`, by regime."""
    events, leaves = trace.events, _leaves(trace, thread)
    leaves = leaves[events.duration[leaves] >= DISPATCH_SIZED_NS]
    regime_of = {
        name: _REGIME_OF_WORK.get(first_match(operator_patterns(), trace.names[name]) or "", "memory")
        for name in np.unique(events.name[leaves]).tolist()
    }
    regimes = np.array([regime_of[name] for name in events.name[leaves].tolist()])
    found = {}
    for regime in ("compute", "memory", "communication"):
        rows = leaves[regimes == regime] if len(leaves) else leaves
        found[regime] = intersect(union(events.start[rows], events.end[rows]), dispatching)
    return found


def _leaves(trace: Trace, thread: int) -> Rows:
    """Operators of the thread that call no other: in order of start, the next one begins after their end."""
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[trace.events.thread[rows] == thread]
    begins, ends = trace.events.start[rows], trace.events.end[rows]
    return rows[np.append(begins[1:] >= ends[:-1], True)] if len(rows) else rows
