"""Collectives run beside the backward pass: each begins as soon as its gradients are there.

Changes: of each step's collectives the part that its backward pass is long enough to hide shrinks by HIDDEN.
Assumes: gradients are ready in turn while the backward pass runs, and a bucket's worth of them at its end is small.
Bounds: what exceeds the backward pass stays; at worst half of what could be hidden is, at best all.
"""

import numpy as np

from tb_bottleneck.replay.modified_graph import Case, World, scaled
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.table import Bools, Floats, Rows

HIDDEN = {Case.EXPECTED: 0.8, Case.LOW: 0.5, Case.HIGH: 1.0}


def cure(world: World, case: Case) -> World | None:
    """Shortens the collectives by what can be hidden; None where no backward pass was recorded."""
    items = world.items
    backward = world.facts.spans_named("autograd::engine::evaluate_function")
    if not len(backward):
        return None
    collectives = world.works(Work.COLLECTIVE)
    computing = world.works(*COMPUTE_KERNELS) & world.inside(backward)
    step = np.searchsorted(world.facts.recording.steps.host, world.facts.graph.items.at, side="right")
    exposed, hiding = _sums(world, step, collectives), _sums(world, step, computing)
    left = 1 - HIDDEN[case] * np.minimum(hiding / np.maximum(exposed, 1), 1.0)
    return world.but(length=np.where(collectives, scaled(items.length, left[step]), items.length))


def _sums(world: World, step: Rows, rows: Bools) -> Floats:
    """Time of these items' operations by step, in ns."""
    count = len(world.facts.recording.steps.host) + 1
    return np.asarray(np.bincount(step[rows], weights=world.items.length[rows], minlength=count), np.float64)


SCENARIO = Scenario("overlap", cure)
