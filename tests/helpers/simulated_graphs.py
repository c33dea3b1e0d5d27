"""Graphs of simulated trainings, for scenarios that need more than a drawing contains."""

from simulate.examine import measured
from simulate.kineto import DIALECTS, Recording
from simulate.workload import Workload

from tb_bottleneck.replay.modified_graph import ModifiedGraph, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph


def simulated_graph(workload: Workload) -> ModifiedGraph:
    """Returns the unmodified graph of the training."""
    return unmodified_graph(RecordedGraph(measured(workload, Recording(DIALECTS[3], stacks=workload.stacks))))
