"""The link between host and device runs at what it was made for.

Changes: copies of pinned memory take their bytes over the healthy link's rate.
Assumes: the link is degraded, and not shared with other work.
Bounds: at worst half of the way there; at best as expected.
"""

import numpy as np

from tb_bottleneck.replay.modified_graph import Case, World
from tb_bottleneck.replay.pcie_link import link_rate
from tb_bottleneck.replay.scenarios.copies import MIN_BYTES
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work


def cure(world: World, case: Case) -> World | None:
    """Shortens the copies; None where the healthy link's rate is not known."""
    rate = link_rate(world)
    if rate is None:
        return None
    items, size = world.items, world.facts.ops.bytes[world.items.op]
    large = world.works(Work.UPLOAD, Work.DOWNLOAD) & (size >= MIN_BYTES)
    healthy = np.minimum(items.length, np.rint(size / rate).astype(np.int64))
    reached = (healthy + items.length) // 2 if case is Case.LOW else healthy
    return world.but(length=np.where(large, reached, items.length))


SCENARIO = Scenario("link", cure)
