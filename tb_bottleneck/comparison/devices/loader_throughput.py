"""Workers make batches at their own pace: for a device that waits for them they come no sooner because it is faster."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.loader import WORKER_ITERATOR, fetches, loader_iterator
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph

# Taking a ready batch off the queue, and handing its memory over, takes 0.06 to 0.2 ms; longer is waiting.
LONGEST_HANDOVER_NS = 200_000
# Where most fetches wait, and take this share of the time, the workers are always behind, and the pace of the training
# is theirs. Of the public ResNet-50 recordings with 4 workers fetches take 0.6 and 0.9 %: handing over 19 MB.
SLOW_FETCHES_FROM, WAITING_FROM = 0.5, 0.03
WORKERS_LIMIT = "the workers make batches at the pace of now, for which the training waits"
WORKERS_KEEP_UP = (
    "the workers keep up then as well: how fast they could be is not seen while nobody waits for them, so at worst "
    "they make batches no sooner than now"
)


def worker_throughput_limit(
    recording: Recording, estimate: Estimate = Estimate.EXPECTED
) -> Callable[[ModifiedGraph], ModifiedGraph] | None:
    """What becomes of the waits for workers that are always behind: they fill whatever the step leaves.

    Workers that keep up are expected to do so still; at worst the pace of now is all that they have. None where
    nothing comes of that, where the training process makes the batches, or where that is not known.
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
    """What is assumed of the workers, where there are some."""
    if not _by_workers(recording):
        return ()
    return (WORKERS_LIMIT if workers_are_behind(recording) else WORKERS_KEEP_UP,)


def _by_workers(recording: Recording) -> bool:
    iterator = loader_iterator(recording)
    return not isinstance(iterator, Missing) and iterator.text == WORKER_ITERATOR


def workers_are_behind(recording: Recording) -> bool:
    """Whether the training waits for its batches, not only for their being handed over."""
    events, rows = recording.trace.events, fetches(recording)
    took = events.duration[rows[recording.in_window(events.start[rows])]]
    most = bool(len(took)) and float(np.mean(took > LONGEST_HANDOVER_NS)) >= SLOW_FETCHES_FROM
    return most and float(took.sum()) >= WAITING_FROM * recording.account.window
