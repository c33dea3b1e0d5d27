"""Each operation is compared with a line marked unit by unit; its result must be canonical."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.base.intervals import Spans, clip, complement, intersect, merge, subtract, union

LENGTH = 40
interval_lists = st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)), max_size=12)


def spans_of(intervals):
    return union([a for a, _ in intervals], [b for _, b in intervals])


def marked(spans: Spans) -> np.ndarray:
    line = np.zeros(LENGTH, bool)
    for begin, end in zip(spans.starts, spans.ends, strict=True):
        line[begin:end] = True
    return line


def assert_canonical(spans: Spans) -> None:
    assert (spans.ends > spans.starts).all(), "an empty span"
    assert (spans.starts[1:] > spans.ends[:-1]).all(), "touching or unsorted spans"


@given(interval_lists)
def test_union_is_what_any_interval_marks(intervals):
    line = np.zeros(LENGTH, bool)
    for begin, end in intervals:
        line[begin:end] = True
    spans = spans_of(intervals)
    assert_canonical(spans)
    assert (marked(spans) == line).all()
    assert spans.total() == line.sum()


@given(interval_lists, interval_lists)
def test_algebra_is_that_of_marked_lines(a, b):
    left, right = spans_of(a), spans_of(b)
    for combined, expected in (
        (merge(left, right), marked(left) | marked(right)),
        (intersect(left, right), marked(left) & marked(right)),
        (subtract(left, right), marked(left) & ~marked(right)),
    ):
        assert_canonical(combined)
        assert (marked(combined) == expected).all()


@given(interval_lists, st.integers(0, LENGTH), st.integers(0, LENGTH))
def test_a_window_splits_into_what_is_covered_and_what_is_free(intervals, a, b):
    begin, end = sorted((a, b))
    spans = spans_of(intervals)
    inside, free = clip(spans, begin, end), complement(spans, begin, end)
    assert_canonical(inside)
    assert_canonical(free)
    assert inside.total() + free.total() == end - begin
    assert inside.total() == marked(spans)[begin:end].sum() == spans.covered(begin, end)


@given(interval_lists)
def test_contains_distinguishes_marked_and_free_units(intervals):
    spans = spans_of(intervals)
    assert (spans.contains(np.arange(LENGTH)) == marked(spans)).all()


def test_covered_is_zero_if_the_end_is_before_the_begin():
    assert Spans(np.array([0]), np.array([10])).covered([5], [3]).tolist() == [0]
