"""Models the throughput of loader workers: a faster device does not make batches arrive sooner."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.loader import WORKER_ITERATOR, fetches, loader_iterator
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.loader import BATCH_HANDOVER_NS

# Taking a ready batch from the queue and handing over its memory takes 0.06 to 0.2 ms; longer fetches wait.
LONGEST_HANDOVER_NS = BATCH_HANDOVER_NS[Estimate.LOW]
# If most fetches wait, for this share of the time, the workers are always behind and determine the pace of the
# training. In the public ResNet-50 recordings with 4 workers, fetches take 0.6 and 0.9 %: handing over 19 MB.
SLOW_FETCHES_FROM, WAITING_FROM = 0.5, 0.03
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
    if not _by_workers(recording):
        return None
    window = float(recording.account.window)
    if not workers_are_behind(recording):
        return (lambda graph: graph.with_floor(window)) if estimate is Estimate.LOW else None

    def change(graph: ModifiedGraph) -> ModifiedGraph:
        gap = graph.items.gap.copy()
        gap[:, Activity.LOAD_BATCH] = np.minimum(gap[:, Activity.LOAD_BATCH], LONGEST_HANDOVER_NS)
        return graph.with_items(gap=gap).with_floor(window)

    return change


def loader_assumptions(recording: Recording) -> tuple[str, ...]:
    """Returns what is assumed about the workers, if there are any."""
    if not _by_workers(recording):
        return ()
    return (WORKERS_LIMIT if workers_are_behind(recording) else WORKERS_KEEP_UP,)


def _by_workers(recording: Recording) -> bool:
    iterator = loader_iterator(recording)
    return not isinstance(iterator, Missing) and iterator.text == WORKER_ITERATOR


def workers_are_behind(recording: Recording) -> bool:
    """Returns True if training waits for its batches, not only for their handover."""
    events, rows = recording.trace.events, fetches(recording)
    durations = events.duration[rows[recording.in_window(events.start[rows])]]
    mostly_slow = bool(len(durations)) and float(np.mean(durations > LONGEST_HANDOVER_NS)) >= SLOW_FETCHES_FROM
    return mostly_slow and float(durations.sum()) >= WAITING_FROM * recording.account.window
