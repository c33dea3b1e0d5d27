"""Simulated trainings, recorded and read by the real reader."""

from simulate.examine import measured, recorded
from simulate.workload import random_workload

from tb_bottleneck.attribution.trace_recording import Recording


def simulated_recording(seed: int) -> Recording:
    """Returns a random training with random recording options."""
    workload = random_workload(seed)
    return measured(workload, recorded(workload, seed))
