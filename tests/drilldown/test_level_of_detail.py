"""A lane reduced to the resolution of the screen: no event is lost, none is added, and there are few blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.drilldown.lanes import Lane
from tb_bottleneck.drilldown.timeline import condense


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
