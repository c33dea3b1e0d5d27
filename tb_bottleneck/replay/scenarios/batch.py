"""Twice as many samples per step: kernels that leave most of the device idle take no longer for them.

Changes: kernels that fill the device, copies and loading take twice as long; kernels too small to fill it, the
optimizer and collectives stay, and so does the host. What is predicted is the time for the recorded samples.
Assumes: memory suffices, and the training does as well with the larger batch.
Bounds: at worst small kernels take half as long again; at best as expected.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Case, World, scaled
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.roofline.underfilled import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work

TIMES = 2
GROWING = {Case.EXPECTED: 1.0, Case.LOW: 1.5, Case.HIGH: 1.0}


def cure(world: World, case: Case) -> World:
    """Doubles the work of each step."""
    items, ops = world.items, world.facts.ops
    small = underfilled(ops, world.facts.recording.trace.multiprocessors)[items.op]
    optimizer = world.inside(world.facts.spans_named("Optimizer.step#"))
    grows = np.where(world.works(*COMPUTE_KERNELS), np.where(small, GROWING[case], TIMES), 1.0)
    grows = np.where(world.works(Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY), TIMES, np.where(optimizer, 1.0, grows))
    gap = world.gap_scaled(Activity.LOAD_BATCH, TIMES)
    return world.but(length=scaled(items.length, grows), gap=gap).with_batch(TIMES)


SCENARIO = Scenario("batch", cure)
