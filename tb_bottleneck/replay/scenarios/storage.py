"""Storage answers evenly: no batch is waited for longer than for a usual one.

Changes: of each fetch that takes longer than the median one, the rest is gone. Where fetches are even, and mostly read,
worker processes read instead (loader.py).
Assumes: what made them slow is the storage, not samples of another size.
Bounds: at worst half of the rest stays; at best nobody waits for a batch at all, as where enough of them are queued up.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.trace.loader import uneven_fetches
from tb_bottleneck.replay.modified_graph import Case, World
from tb_bottleneck.replay.scenarios import loader
from tb_bottleneck.replay.scenarios.scenario import Scenario

STAYING = {Case.EXPECTED: 0.0, Case.LOW: 0.5, Case.HIGH: 0.0}


def cure(world: World, case: Case) -> World | None:
    """Evens the fetches out; None where they are even, and workers cannot be simulated."""
    uneven = uneven_fetches(world.facts.recording)
    if not isinstance(uneven, Measure) or uneven.value <= 0:
        return loader.cure(world, case)
    return loader.without_waiting(world, case) if case is Case.HIGH else evened(world, STAYING[case])


def evened(world: World, staying: float) -> World:
    """The world in which `staying` is left of what each fetch takes beyond the median one."""
    loading = world.items.gap[:, Activity.LOAD_BATCH]
    slow = np.minimum(world.gap_inside(_beyond_usual(world)) * world.facts.gap_length, loading)
    return world.but(gap=world.gap_scaled(Activity.LOAD_BATCH, 1 - slow / np.maximum(loading, 1) * (1 - staying)))


def _beyond_usual(world: World) -> Spans:
    """The ends of long fetches, from where a usual one would have been over."""
    fetches = world.facts.spans_named("enumerate(Data")
    usual = int(np.median(fetches.ends - fetches.starts)) if len(fetches) else 0
    return union(fetches.starts + usual, fetches.ends)


SCENARIO = Scenario("storage", cure, on_cpu=True)
