"""Simulated trainings, recorded and read by the real reader."""

import tempfile
from pathlib import Path

from simulate.examine import recorded
from simulate.kineto import kineto_json
from simulate.machine import Machine
from simulate.training import program_of
from simulate.workload import random_workload

from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load


def simulated_recording(seed: int) -> Recording:
    """Any training, recorded in any way."""
    workload = random_workload(seed)
    run = Machine(program_of(workload)).run()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.pt.trace.json"
        path.write_text(kineto_json(run, recorded(workload, seed)))
        trace = load(str(path))
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)
