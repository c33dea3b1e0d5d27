"""Tests lanes at the resolution of the screen, and the timeline as a message of bounded size.

No event is lost or added, there are few blocks, and every time range has the same lanes.
"""

import json
import math

import numpy as np
import pytest
from helpers.draw import drawn, drawn_trace
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.drilldown import timeline as module
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS, Lane
from tb_bottleneck.drilldown.timeline import MAX_PIXELS, condense, time_range_of, timeline_of
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.trace.trace import load


def lane(*things):
    """Returns a lane of (begin, end, key, name)."""
    columns = (
        [np.array(values, np.int64) for values in zip(*things, strict=True)] if things else [np.empty(0, np.int64)] * 4
    )
    start, end, key, name = columns
    return Lane("host", "", "host 1", 0, start, end, key, name, ("a", "b", "c"))


def rows_of(blocks):
    return list(
        zip(blocks.start.tolist(), blocks.end.tolist(), blocks.name.tolist(), blocks.count.tolist(), strict=True)
    )


def test_what_is_longer_than_a_pixel_stays_as_it_is():
    blocks = condense(lane((0, 40, 1, 0), (50, 90, 1, 1)), 0, 100, 10.0)
    assert rows_of(blocks) == [(0, 40, 0, 1), (50, 90, 1, 1)]


def test_short_neighbours_of_one_kind_are_merged_and_named_after_the_longest():
    blocks = condense(lane((0, 2, 1, 0), (3, 8, 1, 1), (9, 12, 1, 2), (60, 63, 1, 0)), 0, 100, 10.0)
    assert rows_of(blocks) == [(0, 12, 1, 3), (60, 63, 0, 1)]
    assert blocks.busy.tolist() == [10, 3]


def test_a_long_event_between_two_blocks_separates_them():
    blocks = condense(lane((0, 2, 1, 0), (3, 33, 2, 1), (34, 36, 1, 0)), 0, 100, 10.0)
    assert rows_of(blocks) == [(0, 2, 0, 1), (3, 33, 1, 1), (34, 36, 0, 1)]


def test_only_what_reaches_into_the_range_is_returned():
    long_and_short = lane((0, 1000, 1, 0), (10, 20, 1, 1), (500, 510, 1, 2), (2000, 2010, 1, 0))
    assert rows_of(condense(long_and_short, 400, 600, 1.0)) == [(0, 1000, 0, 1), (500, 510, 2, 1)]
    assert rows_of(condense(long_and_short, 1500, 1600, 1.0)) == []
    assert rows_of(condense(lane(), 0, 100, 1.0)) == []


events_with_gaps = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 30), st.integers(0, 2), st.integers(0, 2)), max_size=60
)


@given(events_with_gaps, st.floats(0.5, 50))
def test_counts_and_busy_time_are_kept_and_blocks_do_not_overlap(gaps_and_lengths, resolution):
    things, at = [], 0
    for gap, length, key, name in gaps_and_lengths:
        things.append((at + gap, at + gap + length, key, name))
        at += gap + length
    blocks = condense(lane(*things), 0, at + 1, resolution)
    assert blocks.count.sum() == len(things)
    assert blocks.busy.sum() == sum(end - begin for begin, end, _, _ in things)
    assert (blocks.start[1:] >= blocks.end[:-1]).all()
    assert (blocks.busy <= blocks.end - blocks.start).all()


def test_a_million_events_make_at_most_one_block_per_pixel():
    start = np.arange(1_000_000, dtype=np.int64) * 10
    ones = np.ones(len(start), np.int64)
    busy = Lane("device", "", "d", 0, start, start + 6, np.arange(len(start)) % 5, ones, ("a", "b"))
    pixels = 1000
    assert len(condense(busy, 0, 10_000_000, 10_000_000 / pixels)) <= pixels + 1


@pytest.mark.parametrize("resolution", [0.001, 1e12])
def test_extreme_densities(resolution):
    blocks = condense(lane((0, 2, 1, 0), (3, 8, 1, 1)), 0, 100, resolution)
    assert blocks.count.sum() == 2


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
    assert ("input", 0, 4) in named_blocks(timeline, "account")
    assert list(timeline.keys) == list(KEYS)


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
