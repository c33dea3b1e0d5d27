"""Models the throughput of loader workers: a faster device does not make batches arrive sooner."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measures.trace.loader import LONGEST_HANDOVER_NS
from tb_bottleneck.measures.trace.workers_pace import made_by_workers, workers_are_behind
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph

WORKERS_LIMIT = "the workers keep their current pace, and training waits for them"
WORKERS_KEEP_UP = (
    "the workers still keep up; their maximum pace is unknown because nothing waits for them, so in the worst "
    "case it is their current pace"
)


def worker_throughput_limit(
    recording: Recording, estimate: Estimate = Estimate.EXPECTED
) -> Callable[[ModifiedGraph], ModifiedGraph] | None:
    """Returns the change to a graph in which workers set the pace, or None if they do not change anything.

    If the workers are always behind, the waits for them take all the time that the rest of the step leaves. Workers
    that keep up are expected to keep up; in the worst case, their current pace is their limit. None also if the
    training process makes the batches, or if that is not known.
    """
    if not made_by_workers(recording):
        return None
    window = float(recording.account.window)
    if not workers_are_behind(recording):
        return (lambda graph: graph.with_floor(window)) if estimate is Estimate.LOW else None

    def change(graph: ModifiedGraph) -> ModifiedGraph:
        fetches = np.minimum(graph.items.gap.of(Activity.LOAD_BATCH), LONGEST_HANDOVER_NS)
        return graph.with_gap(Activity.LOAD_BATCH, fetches).with_floor(window)

    return change


def loader_assumptions(recording: Recording) -> tuple[str, ...]:
    """Returns what is assumed about the workers, if there are any."""
    if not made_by_workers(recording):
        return ()
    return (WORKERS_LIMIT if workers_are_behind(recording) else WORKERS_KEEP_UP,)
