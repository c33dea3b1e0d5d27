"""The graph of a CPU run: a chain of the steps of the main thread, which takes the place of the device."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import times_of
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import merge, subtract
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO
from tb_bottleneck.replay.graph.graph import Graph, Items
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.table import Ints


def host_graph_of(recording: Recording) -> Graph:
    """Returns the graph of a CPU run, with one item per step edge: the starts of the steps and the end of the last one.

    The gap of an item is the time of the step that ends at its edge, by activity of the main thread.
    """
    edges, main = recording.steps.edges, recording.host.main_thread
    gap = np.zeros((len(Activity), len(edges)), np.int64)
    if main is not None:
        activities = recording.host.activities(main)
        for activity, spans in activities.items():
            gap[activity, 1:] = spans.covered(edges[:-1], edges[1:])
        # The thread records nothing while it waits for a collective of the host. The regime `communication` has this
        # time.
        recorded = merge(*(spans for activity, spans in activities.items() if activity is not Activity.OTHER))
        waiting = subtract(recording.owned_spans.of(Regime.COMMUNICATION), recorded)
        gap[Activity.SYNCHRONIZE, 1:] += waiting.covered(edges[:-1], edges[1:])
    gap[Activity.OTHER, 1:] = np.diff(edges) - gap[: Activity.OTHER, 1:].sum(axis=0)
    none, nothing = np.full(len(edges), NONE), np.zeros(len(edges), np.int64)
    items = Items(
        follows=np.arange(len(edges)) - 1,
        gap=times_of(list(gap)),
        cost=nothing,
        waits=none,
        drains=np.zeros(len(edges), np.bool_),
        lag=nothing,
        call=none,
        mark=np.arange(len(edges)),
        op=none,
        stream=none,
        length=nothing,
        pause=nothing,
        latency=np.full(len(edges), LONG_AGO),
        after=none,
        after_lag=nothing,
        frozen=_unexplained(recording, len(edges)),
        at=edges,
    )
    return Graph(items, int(edges[0]), (), edges, host_only=True)


def _unexplained(recording: Recording, count: int) -> Ints:
    """Returns per item an equal part (ns) of the unexplained time of the window. `count` is the number of items."""
    return np.full(count, recording.account.ns[Regime.UNEXPLAINED] // max(count - 1, 1))
