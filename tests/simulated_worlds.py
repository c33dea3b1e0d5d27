"""Worlds of simulated trainings, for scenarios that need more than a drawing holds."""

from simulate.examine import measured
from simulate.kineto import DIALECTS, Recording
from simulate.workload import Workload

from tb_bottleneck.replay.modified_graph import Facts, World, recorded_world


def world_of(workload: Workload) -> World:
    """The training as it was recorded."""
    return recorded_world(Facts(measured(workload, Recording(DIALECTS[3], stacks=workload.stacks))))
