"""The account of a run on the CPU: there the CPU is the device, and its timeline is that of the main thread.

An operator's own time, without that of the operators it calls, is the work itself where it is long; where it is short,
it is the price of being called. Pauses between operators belong to dispatching while they are short, and to Python
beyond that (attribution/host_activity.py).
"""

import numpy as np

from tb_bottleneck.attribution.cpu_operators import work_by_regime
from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.intervals import Spans, clip, merge, subtract
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.trace import Trace

# An operator whose own time is shorter than this spends most of it on being called: dispatching one costs 1 to 5 us.
DISPATCH_SIZED_NS = 5_000

# Setting gradients to None gives their memory back, which takes milliseconds for large models and records no operator.
FREES_GRADIENTS = "Optimizer.zero_grad"

REGIME_OF_ACTIVITY = {
    Activity.LOAD_BATCH: Regime.INPUT,
    Activity.INTERRUPT: Regime.INTERRUPTION,
    Activity.INITIALIZE: Regime.INTERRUPTION,
    Activity.ALLOCATE: Regime.ALLOCATOR,
    Activity.SYNCHRONIZE: Regime.SYNC,
    Activity.COPY: Regime.TRANSFER,
    Activity.DISPATCH: Regime.LAUNCH,
    Activity.OTHER: Regime.HOST,
}


def cpu_time_by_regime(trace: Trace, steps: Steps, host: HostTimeline) -> dict[Regime, int]:
    """Nanoseconds of the window by regime; they sum to the window."""
    window = Spans(np.array([steps.begin]), np.array([steps.end]))
    thread = host.main_thread
    if thread is None:
        return {Regime.UNEXPLAINED: window.total()}
    activities = {activity: clip(spans, steps.begin, steps.end) for activity, spans in host.activities(thread).items()}
    known = merge(*activities.values())
    activities[Activity.OTHER] = merge(activities[Activity.OTHER], subtract(window, known))
    ns = _work(trace, thread, activities[Activity.DISPATCH])
    worked_in_all = sum(ns.values())
    for activity, spans in activities.items():
        regime = REGIME_OF_ACTIVITY[activity]
        dispatched_only = spans.total() - (worked_in_all if activity is Activity.DISPATCH else 0)
        ns[regime] = ns.get(regime, 0) + dispatched_only
    return ns


def _work(trace: Trace, thread: int, dispatching: Spans) -> dict[Regime, int]:
    """Own time of the operators that begin in `dispatching`, by regime, in ns."""
    events, rows = trace.events, trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    frees = name_matches(trace.names, events.name[rows], lambda name: name.startswith(FREES_GRADIENTS))
    rows = rows[(events.thread[rows] == thread) & (frees | (events.kind[rows] == Kind.CPU_OP))]
    own = nest(events.start[rows], events.end[rows]).self_times()
    worked = dispatching.contains(events.start[rows]) & (own >= DISPATCH_SIZED_NS)
    rows, own = rows[worked], own[worked]
    ns = {regime: int(own[mine].sum()) for regime, mine in work_by_regime(trace, rows).items()}
    return _fitted(ns, dispatching.total())


def _fitted(ns: dict[Regime, int], limit: int) -> dict[Regime, int]:
    """The parts, scaled down where rows that cross the window's edge make them exceed what they are part of."""
    total = sum(ns.values())
    return ns if total <= limit else {regime: part * limit // total for regime, part in ns.items()}
