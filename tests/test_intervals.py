"""Every sweep is held against painting a line, unit by unit, and against the canonical form."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.intervals import Spans, clip, complement, intersect, merge, subtract, union

LENGTH = 40
pieces = st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)), max_size=12)


def spans_of(found):
    return union([a for a, _ in found], [b for _, b in found])


def painted(spans: Spans) -> np.ndarray:
    line = np.zeros(LENGTH, bool)
    for begin, end in zip(spans.starts, spans.ends, strict=True):
        line[begin:end] = True
    return line


def assert_canonical(spans: Spans) -> None:
    assert (spans.ends > spans.starts).all(), "an empty span"
    assert (spans.starts[1:] > spans.ends[:-1]).all(), "touching or unsorted spans"


@given(pieces)
def test_union_is_what_any_piece_paints(found):
    line = np.zeros(LENGTH, bool)
    for begin, end in found:
        line[begin:end] = True
    spans = spans_of(found)
    assert_canonical(spans)
    assert (painted(spans) == line).all()
    assert spans.total() == line.sum()


@given(pieces, pieces)
def test_algebra_is_that_of_painted_lines(a, b):
    left, right = spans_of(a), spans_of(b)
    for combined, expected in (
        (merge(left, right), painted(left) | painted(right)),
        (intersect(left, right), painted(left) & painted(right)),
        (subtract(left, right), painted(left) & ~painted(right)),
    ):
        assert_canonical(combined)
        assert (painted(combined) == expected).all()


@given(pieces, st.integers(0, LENGTH), st.integers(0, LENGTH))
def test_a_window_splits_into_what_is_covered_and_what_is_free(found, a, b):
    begin, end = sorted((a, b))
    spans = spans_of(found)
    inside, free = clip(spans, begin, end), complement(spans, begin, end)
    assert_canonical(inside)
    assert_canonical(free)
    assert inside.total() + free.total() == end - begin
    assert inside.total() == painted(spans)[begin:end].sum() == spans.covered(begin, end)


@given(pieces)
def test_contains_tells_painted_from_free_units(found):
    spans = spans_of(found)
    assert (spans.contains(np.arange(LENGTH)) == painted(spans)).all()


def test_covered_is_zero_where_the_end_lies_before_the_begin():
    assert Spans(np.array([0]), np.array([10])).covered([5], [3]).tolist() == [0]
