"""Drawn timelines with recorded types of the operators' tensors."""

import json
from pathlib import Path

from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ON_THE_CPU = f"""
    step    {"aaaaaaaaaabbbbbbbbbb" * 3}
    op      {"..aaaabbbb" * 6}
"""
ON_A_GPU = f"""
    step    {"aaaaaaaaaabbbbbbbbbb" * 3}
    op      {"ab........" * 6}
    launch  {"||........" * 6}
    sync    {"..########" * 6}
    gpu     {"..aaaa...." * 6}
    stream  {"......bbbb" * 6}
"""


def typed_file(
    folder: Path, drawing: str, *types: str, dims: tuple[int, ...] = (512, 512), unit_us: float = 100.0
) -> str:
    """Writes a drawing whose operators have one tensor each; in turn of these types. Returns the path."""
    trace = drawn(drawing, unit_us, **({} if "gpu" in drawing else {"deviceProperties": []}))
    operators = [event for event in trace["traceEvents"] if event["cat"] == "cpu_op"]
    for number, event in enumerate(operators):
        kind = types[number % len(types)]
        event["args"] = {"Input Dims": [dims], "Input type": [kind], "Concrete Inputs": [""]}
    path = folder / "typed.pt.trace.json"
    path.write_text(json.dumps(trace | {"record_shapes": 1}))
    return str(path)


def typed_recording(
    folder: Path, drawing: str, *types: str, dims: tuple[int, ...] = (512, 512), unit_us: float = 100.0
) -> Recording:
    """Returns such a drawing as a recording."""
    trace = load(typed_file(folder, drawing, *types, dims=dims, unit_us=unit_us))
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)
