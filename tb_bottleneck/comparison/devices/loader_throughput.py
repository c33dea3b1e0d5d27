"""Workers make batches at their own pace: for a device that waits for them they come no sooner because it is faster."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.loader import WORKER_ITERATOR, fetches, loader_iterator
from tb_bottleneck.replay.modified_graph import Case, World

# Taking a ready batch off the queue, and handing its memory over, takes 0.06 to 0.2 ms; longer is waiting.
LONGEST_HANDOVER_NS = 200_000
# Where most fetches wait, and take this share of the time, the workers are always behind, and the pace of the training
# is theirs. Of the public ResNet-50 recordings with 4 workers fetches take 0.6 and 0.9 %: handing over 19 MB.
BEHIND, WAITED = 0.5, 0.03
PACED = "the workers make batches at the pace of now, for which the training waits"
KEEPING_UP = (
    "the workers keep up then as well: how fast they could be is not seen while nobody waits for them, so at worst "
    "they make batches no sooner than now"
)


def pace_of_workers(recording: Recording, case: Case = Case.EXPECTED) -> Callable[[World], World] | None:
    """What becomes of the waits for workers that are always behind: they fill whatever the step leaves.

    Workers that keep up are expected to do so still; at worst the pace of now is all that they have. None where
    nothing comes of that, where the training process makes the batches, or where that is not known.
    """
    if not _by_workers(recording):
        return None
    window = float(recording.account.window)
    if not behind(recording):
        return (lambda world: world.at_least(window)) if case is Case.LOW else None

    def change(world: World) -> World:
        gap = world.items.gap.copy()
        gap[:, Activity.LOAD_BATCH] = np.minimum(gap[:, Activity.LOAD_BATCH], LONGEST_HANDOVER_NS)
        return world.but(gap=gap).at_least(window)

    return change


def feeding_words(recording: Recording) -> tuple[str, ...]:
    """What is assumed of the workers, where there are some."""
    if not _by_workers(recording):
        return ()
    return (PACED if behind(recording) else KEEPING_UP,)


def _by_workers(recording: Recording) -> bool:
    iterator = loader_iterator(recording)
    return not isinstance(iterator, Missing) and iterator.text == WORKER_ITERATOR


def behind(recording: Recording) -> bool:
    """Whether the training waits for its batches, not only for their being handed over."""
    events, rows = recording.trace.events, fetches(recording)
    took = events.duration[rows[recording.in_window(events.start[rows])]]
    most = bool(len(took)) and float(np.mean(took > LONGEST_HANDOVER_NS)) >= BEHIND
    return most and float(took.sum()) >= WAITED * recording.account.window
