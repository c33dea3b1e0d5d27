"""The rows of the timeline: events of one row do not overlap, at any nesting depth."""

import json

import pytest

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import MAX_DEPTH
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
