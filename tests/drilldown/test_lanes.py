"""The rows of the timeline: events of one row do not overlap, at any nesting depth."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS, MAX_DEPTH, MAX_NESTING, MAX_PYTHON_DEPTH
from tb_bottleneck.trace.trace import load


@pytest.fixture
def nested(tmp_path):
    """Returns nested rows of one kind: `outer` rows once, and inside them `times` stacks of `inner` rows."""

    def made(category, outer, inner, times=5):
        def row(depth, begin, length):
            name = f"train.py({depth}): at depth {depth}"
            return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": length}

        rows = [row(depth, depth, 10_000 - 2 * depth) for depth in range(outer)]
        for number in range(times):
            begin = 500 + number * 1_000
            rows += [row(outer + depth, begin + depth, 900 - 2 * depth) for depth in range(inner)]
        path = tmp_path / "nested.pt.trace.json"
        path.write_text(json.dumps({"with_stack": 1, "traceEvents": rows}))
        return InspectedTrace(load(str(path))).lanes.rows

    return made


def assert_apart(lanes):
    for lane in lanes:
        assert (lane.start[1:] >= lane.end[:-1]).all(), f"{lane.track} at depth {lane.depth}"


def test_operators_are_shown_up_to_the_depth_limit(nested):
    lanes = [lane for lane in nested("cpu_op", 0, MAX_DEPTH + 3) if lane.group == "host"]
    assert [lane.depth for lane in lanes] == list(range(MAX_DEPTH))
    assert_apart(lanes)


def test_steps_that_begin_in_the_call_before_stay_at_one_depth(tmp_path):
    def row(name, begin, end):
        times = {"ts": begin, "dur": end - begin}
        return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, **times}

    rows = [row(f"ProfilerStep#{number}", 100 * number, 100 * number + 100) for number in range(4)]
    rows += [row("Optimizer.step#SGD.step", 100 * number + 60, 100 * number + 110) for number in range(4)]
    path = tmp_path / "steps.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    lanes = [lane for lane in InspectedTrace(load(str(path))).lanes.rows if lane.group == "host"]
    assert [len(lane.start) for lane in lanes] == [4, 4], "the steps, and below them the optimizer"
    assert_apart(lanes)


def test_frames_that_occur_once_take_no_row(nested):
    lanes = [lane for lane in nested("python_function", 20, 3) if lane.group == "python"]
    assert [lane.names[lane.name[0]][-2:] for lane in lanes] == ["20", "21", "22"]
    assert [lane.depth for lane in lanes] == [0, 1, 2], "shown without holes"
    assert_apart(lanes)


def test_frames_deeper_than_are_followed_are_not_shown_in_one_row(nested):
    """Deeper rows were once drawn on top of each other at the last depth that is followed."""
    lanes = [lane for lane in nested("python_function", MAX_NESTING - 3, 10) if lane.group == "python"]
    assert len(lanes) == 3 < MAX_PYTHON_DEPTH
    assert_apart(lanes)


def test_the_thread_of_the_monitor_is_hidden_but_not_a_training_that_it_observes(tmp_path):
    def calls(tid, category, name):
        return [
            {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": 500 + 1_000 * number, "dur": 900}
            for number in range(5)
        ]

    sampling = calls(2, "python_function", "tb_bottleneck/monitor/samplers/cpu.py(75): sample")
    hooks = calls(1, "python_function", "tb_bottleneck/monitor/guard.py(39): call")
    path = tmp_path / "monitored.pt.trace.json"
    path.write_text(json.dumps({"with_stack": 1, "traceEvents": [*sampling, *hooks, *calls(1, "cpu_op", "aten::mm")]}))
    lanes = InspectedTrace(load(str(path))).lanes.rows
    assert [lane.title for lane in lanes if lane.group == "python"] == ["thread 1"]


def test_counters_are_lanes_of_tenths_of_their_range(tmp_path):
    trace = drawn("step aaaaaaaaaabbbbbbbbbb\ngpu  aaaaabbbbbaaaaabbbbb", 1000)
    values = {"SM Active (%)": [0, 7, 55, 100], "SM Clock (MHz)": [990, 990, 1980, 1980]}
    trace["traceEvents"] += [
        {"ph": "C", "name": name, "pid": "GPU 0 Counters", "ts": 5000 * at, "args": {"": value}}
        for name, samples in values.items()
        for at, value in enumerate(samples)
    ]
    path = tmp_path / "counters.json"
    path.write_text(json.dumps(trace))
    lanes = [lane for lane in InspectedTrace(load(str(path))).lanes.rows if lane.group == "counter"]
    assert [lane.title for lane in lanes] == ["SM Active (%)", "SM Clock (MHz)"]
    assert [[KEYS[key] for key in lane.key] for lane in lanes] == [
        ["counter0", "counter0", "counter5", "counter9"],
        ["counter5", "counter5", "counter9", "counter9"],
    ]
    assert [lanes[1].names[name] for name in lanes[1].name] == ["990", "990", "1,980", "1,980"]
    assert lanes[0].start.tolist() == [-5_000_000, 0, 5_000_000, 10_000_000]
    assert lanes[0].end.tolist() == [0, 5_000_000, 10_000_000, 15_000_000]
