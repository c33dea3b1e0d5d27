"""Workers make batches at their own pace: for a device that waits for them they come no sooner because it is faster."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.measures.doing import Doing
from tb_bottleneck.measures.loading import SEVERAL, fetches, loader_iterator
from tb_bottleneck.measures.measure import Missing
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.replay.world import World

# Taking a ready batch off the queue, and handing its memory over, takes 0.06 to 0.2 ms; longer is waiting.
LONGEST_HANDOVER_NS = 200_000
# Where most fetches wait, the workers are always behind, and the pace of the training is theirs.
BEHIND = 0.5
PACED = "the workers make batches at the pace of now, for which the training waits"
KEEPING_UP = "the workers keep up then as well: how fast they could be is not seen while nobody waits for them"


def pace_of_workers(recording: Recording) -> Callable[[World], World] | None:
    """What becomes of the waits for workers that are always behind: they fill whatever the step leaves.

    None where the training process makes the batches, where that is not known, or where the workers keep up.
    """
    if not _by_workers(recording) or not _behind(recording):
        return None
    window = float(recording.account.window)

    def change(world: World) -> World:
        gap = world.items.gap.copy()
        gap[:, Doing.LOAD] = np.minimum(gap[:, Doing.LOAD], LONGEST_HANDOVER_NS)
        return world.but(gap=gap).at_least(window)

    return change


def feeding_words(recording: Recording) -> tuple[str, ...]:
    """What is assumed of the workers, where there are some."""
    if not _by_workers(recording):
        return ()
    return (PACED if _behind(recording) else KEEPING_UP,)


def _by_workers(recording: Recording) -> bool:
    iterator = loader_iterator(recording)
    return not isinstance(iterator, Missing) and iterator.text == SEVERAL


def _behind(recording: Recording) -> bool:
    events, rows = recording.trace.events, fetches(recording)
    took = events.duration[rows[recording.in_window(events.start[rows])]]
    return bool(len(took) and np.mean(took > LONGEST_HANDOVER_NS) >= BEHIND)
