"""The profiler's own cost: while it records, the host dispatches more slowly than it will without it.

Where the recording says how long a step takes unprofiled, the host's speed is solved for with the simulator: the scale
of dispatching at which the replay takes that long, or as long as recorded rows can have made of it. Where it does not,
it is estimated from what was recorded, at a price per event; then the gains of cures that free the host reach from the
fastest host that must be reckoned with to the host as recorded.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.trace.profiler_overhead import NS_PER_CALL, NS_PER_FRAME, NS_PER_OPERATOR, profiler_overhead
from tb_bottleneck.replay.modified_graph import ModifiedGraph, scale_column
from tb_bottleneck.trace.kinds import Kind

# Recording slows the dispatching host 1.6 to 2.1 times (torch 2.13, 80 small layers, every combination of the
# profiler's options against none).
MAX_HOST_SLOWDOWN = 2.1
# Below this the profiler would have slowed the host five times: then something else differs.
MIN_HOST_SCALE = 0.2
# Closer than this the profiler cost nothing.
NO_OVERHEAD_BELOW = 0.001
BISECTION_ROUNDS = 8
_PRICES = {Kind.CPU_OP: NS_PER_OPERATOR, Kind.PYTHON: NS_PER_FRAME, Kind.CALL: NS_PER_CALL}


@dataclass(frozen=True)
class HostScale:
    """Unprofiled over recorded dispatching: what is expected, and between which bounds. `solved`: from a measured
    unprofiled step time."""

    expected: float
    least: float
    most: float
    solved: bool


def with_host_scale(graph: ModifiedGraph, scale: float) -> ModifiedGraph:
    """The world with all dispatching and every call's own time scaled."""
    if scale == 1.0:
        return graph
    return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, scale), cost=scale_column(graph.items.cost, scale))


def host_scale_of(graph: ModifiedGraph) -> HostScale:
    """The host's scales. On a CPU run, where dispatching cannot be told from work, the host is taken as recorded."""
    recording = graph.base.recording
    overhead = profiler_overhead(recording)
    if isinstance(overhead, Measure):
        # It is of the median step; the window also holds steps that take longer, with the profiler as without it.
        solved = _solved(graph, recording.account.window * (1 - overhead.value))
        return HostScale(solved, solved, solved, solved=True)
    if not recording.on_device:
        return HostScale(1.0, 1.0, 1.0, solved=False)
    return HostScale(_priced(graph), 1 / MAX_HOST_SLOWDOWN, 1.0, solved=False)


def _solved(graph: ModifiedGraph, window: float) -> float:
    """The scale at which the window takes so long; the replay grows with the scale, so bisection finds it."""
    if graph.window() <= window * (1 + NO_OVERHEAD_BELOW):
        return 1.0
    low, high = MIN_HOST_SCALE, 1.0
    for _ in range(BISECTION_ROUNDS):
        middle = (low + high) / 2
        if with_host_scale(graph, middle).window() > window:
            high = middle
        else:
            low = middle
    return high


def _priced(graph: ModifiedGraph) -> float:
    """What is left of dispatching when each recorded event's price is taken off."""
    recording, items = graph.base.recording, graph.items
    events = recording.trace.events
    launching = np.isin(events.thread, recording.host.launching_threads)
    counted = launching & recording.in_window(events.start)
    price = sum(cost * int((events.kind[counted] == kind).sum()) for kind, cost in _PRICES.items())
    inside = recording.in_window(items.at)
    dispatching = int(items.gap[inside, Activity.DISPATCH].sum() + items.cost[inside].sum())
    return float(np.clip(1 - price / max(dispatching, 1), 1 / MAX_HOST_SLOWDOWN, 1.0))
