"""The timeline as a message: bounded in size, with the same lanes for every time range."""

import json
import math

import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.drilldown import timeline as module
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS
from tb_bottleneck.drilldown.timeline import MAX_PIXELS, time_range_of, timeline_of
from tb_bottleneck.report.rendering.figures import as_json
from tb_bottleneck.trace.trace import load

RUN = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ####......####......
    op      ....##........##....
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


@pytest.fixture
def inspected():
    return InspectedTrace(drawn_trace(RUN))


def whole(inspected, pixels=1000.0):
    return timeline_of(inspected, time_range_of(inspected, None, None, pixels))


def named_blocks(timeline, group):
    """Returns (name or key, begin in columns of the drawing, length) of each block of a group's outermost lane."""
    lane = next(lane for lane in timeline.lanes if lane.group == group)
    return [
        (timeline.names[name] if name >= 0 else timeline.keys[key], begin / 1e5, length / 1e5)
        for name, key, begin, length in zip(lane.name, lane.key, lane.begin_ns, lane.length_ns, strict=True)
    ]


def test_the_blocks_are_those_of_the_drawing(inspected):
    timeline = whole(inspected)
    assert [name for name, _, _ in named_blocks(timeline, "steps")] == ["Step 1", "Step 2"]
    assert [(begin, length) for _, begin, length in named_blocks(timeline, "device")] == [(5, 5), (15, 5)]
    assert [name for name, _, _ in named_blocks(timeline, "host")] == ["ProfilerStep#0", "ProfilerStep#1"]
    assert ("input", 0, 4) in named_blocks(timeline, "account")
    assert list(timeline.keys) == list(KEYS)


def test_what_the_host_calls_is_nested_and_coloured_by_what_it_does(inspected):
    lanes = [lane for lane in whole(inspected).lanes if lane.group == "host"]
    assert [lane.depth for lane in lanes] == [0, 1, 2]
    assert {KEYS[key] for key in lanes[1].key} == {"input", "op"}
    assert {KEYS[key] for key in lanes[2].key} == {"call"}


def test_every_range_has_the_same_lanes(inspected):
    some = timeline_of(inspected, time_range_of(inspected, 500_000, 600_000, 50))
    assert [(lane.track, lane.depth, lane.group) for lane in some.lanes] == [
        (lane.track, lane.depth, lane.group) for lane in whole(inspected).lanes
    ]
    assert (some.begin_ns, some.end_ns) == (500_000, 600_000)
    assert (some.first_ns, some.last_ns) == (0, 2_000_000)


@pytest.mark.parametrize(
    ("begin", "end", "pixels"),
    [
        (None, None, None),
        (-1e18, 1e18, 1e18),
        (1e18, 0, 0),
        (2_000_000, 2_000_000, 10),
        (5, 5, -3),
        (0.4, 0.6, math.pi),
    ],
)
def test_any_range_is_answered(inspected, begin, end, pixels):
    time_range = time_range_of(inspected, begin, end, pixels)
    assert 0 <= time_range.begin < time_range.end <= 2_000_001
    assert 16 <= time_range.pixels <= MAX_PIXELS
    as_json(timeline_of(inspected, time_range))


def test_too_many_blocks_are_made_coarser(inspected, monkeypatch):
    monkeypatch.setattr(module, "MAX_BLOCKS", 8)
    timeline = whole(inspected)
    assert timeline.resolution_ns > 2_000_000 / 1000
    assert sum(sum(lane.count) for lane in timeline.lanes) == sum(sum(lane.count) for lane in whole(inspected).lanes)


def test_names_are_cut_and_stay_text(inspected, tmp_path):
    content = drawn(RUN)
    for event in content["traceEvents"]:
        event["name"] += "<script>" + "x" * 5_000
    (tmp_path / "t.json").write_text(json.dumps(content))
    timeline = whole(InspectedTrace(load(str(tmp_path / "t.json"))))
    assert max(map(len, timeline.names)) == module.MAX_LABEL_LENGTH


def test_a_recording_of_nothing_has_a_timeline_of_nothing(tmp_path):
    (tmp_path / "t.json").write_text('{"traceEvents": []}')
    timeline = whole(InspectedTrace(load(str(tmp_path / "t.json"))))
    assert (timeline.first_ns, timeline.last_ns, list(timeline.lanes)) == (0, 0, [])
