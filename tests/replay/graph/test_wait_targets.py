"""The targets of waits, on drawn timelines."""

import json
from pathlib import Path

import numpy as np
from helpers.drawn_graphs import drawn_recording

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.replay.graph.host_rows import NONE, host_rows
from tb_bottleneck.replay.graph.wait_targets import WaitTargets, find_wait_targets
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load


def waits(drawing: str) -> tuple[WaitTargets, list[str]]:
    """The waits, and the name of each row's call; of a step's begin the word mark."""
    recording = drawn_recording(drawing)
    rows = host_rows(recording.trace, recording.steps, recording.host.main_thread or 0)
    launched_end = np.array([recording.trace.all_device_ops.end.max()] * len(rows))
    found = find_wait_targets(recording.trace, rows, rows.start, launched_end)
    calls, names = recording.trace.calls, recording.trace.names
    return found, [names[calls.name[call]] if call >= 0 else "mark" for call in rows.call.tolist()]


def test_a_synchronising_call_waits_for_what_ended_in_it():
    found, names = waits("""
        step    aaaaaaaaaa
        launch  ||........
        sync    ..#####...
        gpu     .aaabbb...
    """)
    row = names.index("cudaStreamSynchronize")
    assert found.op[row] == 1, "the second kernel"
    assert found.lag[row] == 0, "both end at column 7"
    assert found.cost[row] < 100_000, "all but a few us of the call was waiting"


def test_a_launch_waits_for_nothing():
    found, names = waits("""
        step    aaaaaaaaaa
        launch  ||........
        gpu     .aaabbb...
    """)
    assert {found.op[row] for row, name in enumerate(names) if name == "cudaLaunchKernel"} == {NONE}


def test_a_wait_for_nothing_that_was_recorded_is_unknown():
    """No work ends inside it, and none was launched before: it takes its time with any fix."""
    found, names = waits("""
        step    aaaaaaaaaaaaaaaa
        sync    .#####..........
        launch  .......||.......
        gpu     ........##......
    """)
    row = names.index("cudaStreamSynchronize")
    assert found.op[row] == NONE
    assert found.unknown[row] > 0
    assert found.cost[row] == 500_000


def test_a_full_queue_is_distinguished_from_a_slow_launch(tmp_path):
    """Seven hundred kernels lie ahead of the last launches, which take 50 us each until a kernel ends."""
    facts = RecordedGraph(_far_ahead(tmp_path / "ahead.pt.trace.json"))
    launches = facts.graph.items
    held = (launches.op >= 0) & (launches.waits >= 0)
    assert held.any()
    assert (launches.cost[held] <= 4_000).all(), "what such a launch takes is the device's time, not the host's"
    assert facts.check.error < 0.01


def _far_ahead(path: Path) -> Recording:
    events, kernel_us, count, free_us = [], 50.0, 1500, 700
    for number in range(count):
        blocked = number >= free_us
        begin = 4.0 * number if not blocked else kernel_us * (number - free_us) + 10.0 + 4.0 * free_us
        length = 3.0 if not blocked else 48.0
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
        events.append(call | {"ts": begin, "dur": length, "args": {"correlation": number + 1}})
        kernel = {"ph": "X", "cat": "kernel", "name": "sm80_gemm", "pid": 0, "tid": 7, "ts": 8.0 + kernel_us * number}
        args = {"correlation": number + 1, "device": 0, "stream": 7, "grid": [999, 1, 1]}
        events.append(kernel | {"dur": kernel_us, "args": args})
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0.0, "args": {}}
    events.append(step | {"dur": kernel_us * (count - free_us) + 4.0 * free_us + 100})
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    trace = load(str(path))
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)
