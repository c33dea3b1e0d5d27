"""Own times and innermost rows, compared with a search in each unit of time."""

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_bottleneck.trace.nesting import innermost, nest


@st.composite
def calls(draw, begin=0, end=2000, depth=0):
    """Properly nested rows as (start, end). Steps of 20 ns: beyond the tolerance."""
    rows, at = [], begin
    while at < end - 40 and draw(st.booleans()):
        start = at + 20 * draw(st.integers(0, 5))
        stop = start + 20 * draw(st.integers(1, 30))
        if stop > end:
            break
        rows.append((start, stop))
        if depth < 3:
            rows += draw(calls(begin=start, end=stop, depth=depth + 1))
        at = stop
    return rows


@given(calls(), st.randoms())
def test_own_time_is_where_no_nested_row_runs(rows, random):
    starts, ends = (np.array(values, np.int64) for values in (zip(*rows, strict=True) if rows else ((), ())))
    order = np.lexsort((-(ends - starts), starts))
    starts, ends = starts[order], ends[order]
    innermost = np.full(2100, -1)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        innermost[start:end] = row
    expected = [int((innermost == row).sum()) for row in range(len(starts))]
    assert nest(starts, ends).self_times().tolist() == expected
    found, row = nest(starts, ends).innermost(np.arange(2100))
    assert np.where(found, row, -1).tolist() == innermost.tolist()
    some = np.array([random.random() < 0.5 for _ in rows], np.bool_)
    owner = np.full(2100, -1)
    for begin, end, row in zip(*nest(starts, ends).self_spans(some), strict=True):
        assert begin < end
        assert (owner[begin:end] == -1).all()
        owner[begin:end] = row
    assert owner.tolist() == np.where(np.isin(innermost, np.flatnonzero(some)), innermost, -1).tolist()


def test_a_child_that_outlives_its_parent_by_nanoseconds_is_still_its_child():
    """Recordings with ns resolution end children up to 3 ns after their parents."""
    assert nest(np.array([0, 600]), np.array([1000, 1003])).self_times().tolist() == [600, 403]
    spans = nest(np.array([0, 600, 1001]), np.array([2000, 1003, 1500])).self_spans(np.array([True, True, True]))
    assert [one.tolist() for one in spans] == [[0, 600, 1001, 1500], [600, 1001, 1500, 2000], [0, 1, 2, 0]]


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=40),
    st.lists(st.integers(-3, 110), max_size=20),
)
def test_the_innermost_is_the_last_that_began_and_runs(rows, times):
    rows = sorted((begin, -length) for begin, length in rows)
    start, end = np.array([b for b, _ in rows], np.int64), np.array([b - n for b, n in rows], np.int64)
    found, row = innermost(start, end, np.array(times, np.int64))
    for at, is_found, which in zip(times, found.tolist(), row.tolist(), strict=True):
        running = [index for index in range(len(rows)) if start[index] <= at < end[index]]
        assert (is_found, which if running else None) == (bool(running), running[-1] if running else None)


def test_a_deep_stack_costs_no_more_than_a_flat_one():
    """Each lookup walked up the stack to the row that still ran; with a depth of 250,000 rows this took hours."""
    rows = 250_000
    start, end = np.arange(rows), 2 * rows - np.arange(rows)
    began = time.perf_counter()
    found, _ = innermost(start, end, np.arange(2 * rows + 1, 4 * rows))
    within, row = innermost(start, end, np.array([2 * rows - 5]))
    assert (found.any(), within.tolist(), row.tolist()) == (False, [True], [4])
    assert time.perf_counter() - began < 20
