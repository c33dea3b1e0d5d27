"""Drawn runs for the causes that are not simulated: a cause is named if it costs time, and only then.

The others are planted in simulate/problems.py, with healthy trainings that look similar.
"""

import json
from dataclasses import dataclass, field

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose

# Kernels per drawn kernel, launched together: a recording with fewer than eight kernels is not judged.
PARTS = 4
FRAME, ANNOTATION, BACKWARD = "python_function", "user_annotation", "autograd::engine::evaluate_function"


@dataclass(frozen=True)
class Planted:
    """A run with the problem, a similar healthy run, and (category, name) to replace names of the drawing."""

    problem: str
    healthy: str
    named: dict[str, tuple[str, str]] = field(default_factory=dict)


DRAWN_FRAME, DRAWN_OPERATOR, DRAWN_MALLOC = "train.py(10): augment", "aten::linear", "cudaMalloc"
DRAWN_COPY = "Memcpy HtoD (Pageable -> Device)"
DRAWN_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

# A Python frame of three milliseconds after the kernels, and the same while kernels still run.
FRAME_WHILE_IDLE = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##........##........##........
    python  .....####......####......####.
    gpu     ..aabb......ccdd......eeff....
"""
FRAME_WHILE_BUSY = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##........##........##........
    python  ...####......####......####...
    gpu     .aaaabbbbccccccdddddeeeeeffff.
"""
LOADER_WHILE_IDLE = FRAME_WHILE_IDLE.replace("python", "loader")
LOADER_WHILE_BUSY = FRAME_WHILE_BUSY.replace("python", "loader")
MALLOC_WHILE_IDLE = FRAME_WHILE_IDLE.replace("python", "malloc")
MALLOC_WHILE_BUSY = FRAME_WHILE_BUSY.replace("python", "malloc")
# The host waits inside an operator until the kernels are done, and works on for four milliseconds before it launches.
WAIT_THEN_IDLE = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##############################
    sync    ..####......####......####....
    gpu     .aaaa......bbbb......cccc.....
"""
WAIT_THEN_BUSY = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##############################
    sync    ..####......####......####....
    gpu     .aaaaabbbbbcccccdddddeeeeeffff
"""
FEW_BLOCKS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##........##........##........
    small   .aaaabbbbccccccdddddeeeeeffff.
"""

CAUSES = {
    "logging": Planted(
        FRAME_WHILE_IDLE, FRAME_WHILE_BUSY, {DRAWN_FRAME: (FRAME, "torch/utils/tensorboard/writer.py(367): add_scalar")}
    ),
    # Only a training can be interrupted by an evaluation, so the operators are those of a backward pass.
    "evaluation": Planted(
        LOADER_WHILE_IDLE,
        LOADER_WHILE_BUSY,
        {DRAWN_LOADER: (ANNOTATION, "evaluate"), DRAWN_OPERATOR: ("cpu_op", f"{BACKWARD}: AddmmBackward0")},
    ),
    "batches_in_the_loop": Planted(
        FRAME_WHILE_IDLE, FRAME_WHILE_BUSY, {DRAWN_FRAME: (FRAME, "torchvision/transforms/functional.py(175): resize")}
    ),
    "slow_loader": Planted(LOADER_WHILE_IDLE, LOADER_WHILE_BUSY, {DRAWN_LOADER: (ANNOTATION, "enumerate(DataPipe)#M")}),
    "growing_memory": Planted(MALLOC_WHILE_IDLE, MALLOC_WHILE_BUSY),
    "pinned_allocations": Planted(
        MALLOC_WHILE_IDLE, MALLOC_WHILE_BUSY, {DRAWN_MALLOC: ("cuda_runtime", "cudaHostAlloc")}
    ),
    "blocking_waits": Planted(WAIT_THEN_IDLE, WAIT_THEN_BUSY, {DRAWN_OPERATOR: ("cpu_op", "vendor::solve")}),
    "blocking_uploads": Planted(
        WAIT_THEN_IDLE + "    h2d     b.........b.........b.........\n",
        WAIT_THEN_BUSY + "    h2d     b.........b.........b.........\n",
        {DRAWN_OPERATOR: ("cpu_op", "aten::copy_"), DRAWN_COPY: ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)")},
    ),
    # Pinned memory removes the waits for the copies, too: one finding.
    "pageable_copies": Planted(
        WAIT_THEN_IDLE + "    h2d     b.........b.........b.........\n",
        WAIT_THEN_BUSY + "    h2d     .b.........b.........b........\n",
        {DRAWN_OPERATOR: ("cpu_op", "aten::copy_")},
    ),
    "small_batch": Planted(FEW_BLOCKS, FEW_BLOCKS.replace("small  ", "gpu    ")),
}


def causes(tmp_path, drawing, named):
    whole = drawn(drawing, 1000)
    events = []
    for event in whole["traceEvents"]:
        if event["name"] in named:
            event["cat"], event["name"] = named[event["name"]]
        if event["cat"] != "kernel" and event["name"] != "cudaLaunchKernel":
            events.append(event)
            continue
        length = event["dur"] / PARTS if event["cat"] == "kernel" else 1
        for part in range(PARTS):
            args = {**event["args"], "correlation": 1000 + event["args"]["correlation"] * PARTS + part}
            events.append({**event, "dur": length, "ts": event["ts"] + part * length, "args": args})
    path = tmp_path / "drawn.pt.trace.json"
    path.write_text(json.dumps({**whole, "traceEvents": events}))
    report = diagnose(str(path))
    assert report.health.status in ("ok", "degraded"), report.health.reasons
    return [finding.cause for finding in report.findings]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_planted_cause_is_named(tmp_path, cause):
    planted = CAUSES[cause]
    assert cause in causes(tmp_path, planted.problem, planted.named)


@pytest.mark.parametrize("cause", CAUSES)
def test_a_similar_run_without_cost_does_not_get_the_cause(tmp_path, cause):
    planted = CAUSES[cause]
    assert cause not in causes(tmp_path, planted.healthy, planted.named)


def test_one_fix_for_copies_and_the_waits_for_them_is_one_finding(tmp_path):
    planted = CAUSES["pageable_copies"]
    assert "blocking_uploads" not in causes(tmp_path, planted.problem, planted.named)
