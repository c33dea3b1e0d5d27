"""The next batch is copied on a stream of its own while this one trains.

Changes: copies to the device take no time on the stream that computes, and nobody waits for them.
Assumes: memory for a second batch is there.
Bounds: the window is never shorter than all of its copies take one after the other, since they share the link. At worst
copies only return at once, and still run between the kernels.
"""

import numpy as np

from tb_bottleneck.replay.modified_graph import Case, World
from tb_bottleneck.replay.scenarios.copies import freed
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work


def cure(world: World, case: Case) -> World:
    """Takes the copies off the computing stream."""
    unwaited = freed(world)
    if case is Case.LOW:
        return unwaited
    items, uploads = unwaited.items, unwaited.works(Work.UPLOAD)
    on_link = int(items.length[uploads & world.facts.recording.in_window(items.at)].sum())
    return unwaited.but(length=np.where(uploads, 0, items.length)).at_least(on_link)


SCENARIO = Scenario("prefetch", cure)
