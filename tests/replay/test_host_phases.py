"""The phases of a step keep their own scales of dispatching, if their times without the profiler are known."""

import numpy as np
import pytest
from helpers import draw
from helpers.drawn_graphs import drawn_graph

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.host_scale import host_scale_of, with_host_scale

# A step of 1 ms: 0.4 ms forward, 0.3 ms backward by the autograd thread, 0.3 ms in the optimizer. The device is idle.
STEPS = """
    step       aaaaaaaaaabbbbbbbbbbcccccccccc
    op         ####......####......####......
    backward   ....###.......###.......###...
    optimizer  .......###.......###.......###
    launch     ...|../..|...|../..|...|../..|
    gpu        ....#..#..#...#..#..#...#..#..
"""
MS = 1e6


@pytest.fixture(autouse=True)
def optimizer_row(monkeypatch):
    monkeypatch.setitem(draw.HOST_ROWS, "optimizer", ("user_annotation", "Optimizer.step#Adam.step"))


def graph_of(**context):
    return drawn_graph(STEPS, tb_bottleneck={"context": context})


def dispatch(graph, scale):
    """Returns the scaled time / the recorded time of dispatching in the forward pass, backward pass and optimizer."""
    items, scaled = graph.items, with_host_scale(graph, scale).items
    recording = graph.base.recording
    optimizer = recording.optimizer_steps.contains(items.at)
    backward = (recording.trace.calls.thread[items.call] != recording.host.main_thread) & (items.call >= 0)
    masks = (~optimizer & ~backward, backward, optimizer)
    times = [[(each.gap.of(Activity.DISPATCH) + each.cost)[mask].sum() for mask in masks] for each in (items, scaled)]
    return (np.array(times[1]) / np.array(times[0])).tolist()


PACE = {"host_pace_ns": [0.5 * MS] * 3, "host_phases_ns": {"backward": 0.24 * MS, "optimizer": 0.06 * MS}}


def test_each_phase_takes_as_long_as_in_steps_that_the_device_does_not_hold_back():
    graph = graph_of(**PACE)
    weights = graph.base.phase_weights
    assert weights is not None
    forward, backward, optimizer = dispatch(graph, 0.5)
    assert optimizer == pytest.approx(0.5 * backward, rel=0.05)  # recorded, they are equally long
    assert forward < backward
    scale = host_scale_of(graph)
    assert scale.phases == {"backward": 0.24 * MS, "optimizer": 0.06 * MS}
    alone = with_host_scale(graph, scale.expected).host_step()
    assert alone == pytest.approx(0.5 * MS, rel=0.05)


def test_logged_phases_count_if_the_host_limits_the_step():
    """The device works for 0.3 of 0.8 ms."""
    logged = {"unprofiled_step_ns": 0.8 * MS, "unprofiled_backward_ns": 0.3 * MS, "unprofiled_optimizer_ns": 0.1 * MS}
    forward, backward, optimizer = dispatch(graph_of(**logged), 0.6)
    assert optimizer < 0.7 * min(forward, backward)
    assert graph_of(**logged | {"unprofiled_step_ns": 0.45 * MS}).base.phase_weights is None  # the device limits it


@pytest.mark.parametrize(
    "phases",
    [
        {},
        {"backward": 0.2 * MS},
        {"backward": 0.2 * MS, "optimizer": 0.4 * MS},
        {"backward": "x", "optimizer": 0.1 * MS},
        [0.1 * MS],
        {"backward": -1, "optimizer": True},
    ],
    ids=["none", "one", "longer than the step", "text", "list", "no times"],
)
def test_phases_that_do_not_fit_the_step_are_not_used(phases):
    graph = graph_of(**PACE | {"host_phases_ns": phases})
    assert graph.base.phase_weights is None
    forward, backward, optimizer = dispatch(graph, 0.5)
    assert forward == pytest.approx(backward, abs=0.01) == pytest.approx(optimizer, abs=0.01)


def test_a_recording_without_calls_of_the_host_has_no_phases():
    rows = [line for line in STEPS.splitlines() if "launch" not in line]
    launches = f"    launch     {'xxx' + '.' * 7}" + ("xxx" + "." * 7) * 2
    graph = drawn_graph("\n".join([*rows, launches]), tb_bottleneck={"context": PACE})
    assert not len(graph.base.recording.trace.calls)
    assert graph.base.phase_weights is None


def test_without_an_optimizer_in_the_recording_one_scale_counts_for_all(monkeypatch):
    monkeypatch.setitem(draw.HOST_ROWS, "optimizer", ("cpu_op", "aten::add_"))
    assert graph_of(**PACE).base.phase_weights is None
