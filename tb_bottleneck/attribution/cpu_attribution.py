"""Attribution of the window of a run on the CPU: the CPU is the device, and its timeline is that of the main thread.

An operator's own time, without the operators it calls, is work if it is long; if it is short, it is dispatch overhead.
Pauses between operators belong to dispatching if they are short, and to Python if they are longer
(attribution/host_activity.py).
"""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.cpu_operators import work_by_regime
from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity, HostTimeline
from tb_bottleneck.attribution.owned_spans import Claim
from tb_bottleneck.intervals import Spans, clip, intersect, merge, subtract, union
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import Nesting, nest
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Own time below this is mostly the overhead of the call: dispatching an operator costs 1 to 5 us.
DISPATCH_SIZED_NS = 5_000

# Setting gradients to None frees their memory, which takes milliseconds for large models and records no operator.
FREES_GRADIENTS = "Optimizer.zero_grad"


def cpu_claims(trace: Trace, steps: Steps, host: HostTimeline) -> Iterator[Claim]:
    """Yields the claims on the window; their times sum to the window."""
    window, thread = Spans(np.array([steps.begin]), np.array([steps.end])), host.main_thread
    if thread is None:
        yield Regime.UNEXPLAINED, window.starts, window.ends
        return
    rest = window
    for activity, spans in host.activities(thread).items():
        inside = clip(spans, steps.begin, steps.end)
        rest = subtract(rest, inside)
        if activity is Activity.DISPATCH:
            yield from _operator_claims(trace, thread, inside)
        else:
            yield REGIME_OF_ACTIVITY[activity], inside.starts, inside.ends
    yield Regime.HOST, rest.starts, rest.ends


def _operator_claims(trace: Trace, thread: int, dispatching: Spans) -> Iterator[Claim]:
    """Splits `dispatching` into the own time of long operators, by regime, and the dispatch overhead that remains."""
    events, rows = trace.events, _operators(trace, thread)
    nesting = nest(events.start[rows], events.end[rows])
    is_long = nesting.self_times() >= DISPATCH_SIZED_NS
    begin, end, owner = _own_time(nesting, is_long)
    work = []
    for regime, of_regime in work_by_regime(trace, rows[is_long]).items():
        is_work = np.zeros(len(rows), np.bool_)
        is_work[is_long] = of_regime
        spans = intersect(union(begin[is_work[owner]], end[is_work[owner]]), dispatching)
        work.append(spans)
        yield regime, spans.starts, spans.ends
    overhead = subtract(dispatching, merge(*work))
    yield Regime.LAUNCH, overhead.starts, overhead.ends


def _own_time(nesting: Nesting, rows: Bools) -> tuple[Ints, Ints, Ints]:
    """Returns begins, ends and owners (rows of `nesting`) of time spans that include all own time of `rows`."""
    times = np.concatenate((nesting.end, nesting.start))
    order = np.argsort(times, kind="stable")
    edges = times[order]
    is_span = edges[1:] > edges[:-1]
    begin, end, owner = edges[:-1][is_span], edges[1:][is_span], order[:-1][is_span] - len(nesting.start)
    # A row that begins is the innermost one. After the end of a row, the innermost row must be looked up.
    is_owned = (owner >= 0) & (nesting.end[owner] > begin)
    ended = np.flatnonzero(~is_owned)
    ended = ended[union(nesting.start[rows], nesting.end[rows]).contains(begin[ended])]
    is_owned[ended], owner[ended] = nesting.innermost(begin[ended])
    return begin[is_owned], end[is_owned], owner[is_owned]


def _operators(trace: Trace, thread: int) -> Rows:
    """Returns the rows of a thread's operators, including annotations that free gradients."""
    events, rows = trace.events, trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    frees = name_matches(trace.names, events.name[rows], lambda name: name.startswith(FREES_GRADIENTS))
    return np.asarray(rows[(events.thread[rows] == thread) & (frees | (events.kind[rows] == Kind.CPU_OP))], np.intp)
