"""Worlds of simulated trainings, for scenarios that need more than a drawing holds."""

import tempfile
from pathlib import Path

from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.training import program_of
from simulate.workload import Workload

from tb_bottleneck.measures.recording import Recording as Recorded
from tb_bottleneck.replay.world import Facts, World, recorded_world
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load


def world_of(workload: Workload) -> World:
    """The training as it was recorded."""
    text = kineto_json(Machine(program_of(workload)).run(), Recording(DIALECTS[3], stacks=workload.stacks))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.pt.trace.json"
        path.write_text(text)
        trace = load(str(path))
    steps = find_steps(trace)
    assert steps is not None
    return recorded_world(Facts(Recorded(trace, steps)))
