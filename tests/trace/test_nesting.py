"""Own times and innermost rows, against asking for each unit of time which row is innermost."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.trace.nesting import nest


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


@given(calls())
def test_own_time_is_where_no_nested_row_runs(rows):
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


def test_a_child_that_outlives_its_parent_by_nanoseconds_is_still_its_child():
    """Recordings with ns resolution end children up to 3 ns after their parents."""
    assert nest(np.array([0, 600]), np.array([1000, 1003])).self_times().tolist() == [600, 403]
