"""Tests of columns that are stored in few bytes and read as int64, and of the return of freed memory to the system."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tb_bottleneck.trace.columns.packed_column import SumColumn, look_up, packed, return_freed_memory
from tb_bottleneck.trace.kinds import Kind


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="only there can the C library be told to return memory")
def test_memory_between_used_parts_is_returned():
    """A used part lies after each freed one, so nothing is returned by itself."""
    parts = [bytearray(65_536) for _ in range(2_000)]
    del parts[::2]
    before = resident_pages()
    return_freed_memory()
    assert resident_pages() < before - 1_000 * 65_536 // 4_096 // 2


def test_it_does_nothing_where_it_cannot(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    return_freed_memory()


SPARSE = [0] * 90 + [7, 0, -(2**40), 0, 0, 127]
VALUES = [[0, 100, 127], [-5, 0, 5], [0, 2**15], [-(2**31), 2**31 - 1], [0, 2**62], [], [0] * 20, SPARSE]


@pytest.mark.parametrize("values", VALUES)
def test_a_column_reads_as_int64(values):
    column, plain = packed(np.array(values, np.int64)), np.array(values, np.int64)
    mask, rows = plain > 0, np.arange(len(plain))[::-1]
    slices = (slice(None), slice(1, None), slice(-7, -2), slice(5, 2), slice(None, None, -2))
    for index in (*slices, mask, rows):
        assert column[index].dtype == np.int64
        assert np.array_equal(column[index], plain[index])
    for row in range(-len(plain), len(plain)):
        assert column[row] == plain[row]
        assert column[[row]].tolist() == [plain[row]]
        assert column[np.int64(row)].dtype == np.int64
    for row in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            column[np.array([row])]
    assert np.asarray(column).dtype == np.int64
    assert np.array_equal(column, plain)
    assert len(column) == len(plain)


def test_numbers_that_fit_into_a_byte_do_not_overflow():
    column = packed(np.array([100, 127], np.int64))
    assert (column[:] * column[:]).tolist() == [10_000, 127 * 127]
    assert int(column[1] * 1000) == 127_000
    assert (np.array([1, 2], np.int8) + column).tolist() == [101, 129]
    assert np.stack((column, column)).sum() == 454
    assert np.multiply(column, column).tolist() == [10_000, 127 * 127]
    with pytest.raises(TypeError):
        _ = column + 1  # only what was read can be added


def test_comparisons_are_those_of_the_numbers():
    check_comparisons(packed(np.array([-1, 0, 127], np.int64)), np.array([-1, 0, 127]))
    check_comparisons(SumColumn(np.array([1, 2, 3]), packed(np.array([-2, -2, 124]))), np.array([-1, 0, 127]))
    check_comparisons(packed(np.array([-1, 0, 127, *[0] * 50], np.int64)), np.array([-1, 0, 127, *[0] * 50]))


def check_comparisons(column, plain):
    for other in (0, 128, -(2**40), 2**40, np.int64(127), -plain, Kind(1)):
        assert (column == other).tolist() == (plain == other).tolist()
        assert (column != other).tolist() == (plain != other).tolist()
        assert (column < other).tolist() == (plain < other).tolist()
        assert (column <= other).tolist() == (plain <= other).tolist()
        assert (column > other).tolist() == (plain > other).tolist()
        assert (column >= other).tolist() == (plain >= other).tolist()
        assert (other == column).tolist() == (plain == other).tolist()


def test_an_index_of_an_array_can_be_a_column():
    assert np.array([10, 20, 30])[packed(np.array([2, 0]))].tolist() == [30, 10]


@pytest.mark.parametrize("count", [0, 3, 200_000])
def test_values_are_looked_up_by_the_column(count):
    rows = np.arange(count) % 7
    for column in (rows, packed(rows), packed(np.where(np.arange(count) % 50, 0, rows))):
        assert np.array_equal(look_up(np.arange(7.0), column), np.arange(7.0)[column])


def test_a_sum_is_computed_for_the_rows_that_are_read():
    column = SumColumn(np.array([2**60, 1]), packed(np.array([100, 127])))
    assert column[0] == 2**60 + 100
    assert column[:].tolist() == [2**60 + 100, 128]
    assert column[np.array([1, 1])].tolist() == [128, 128]
    assert np.asarray(column).tolist() == [2**60 + 100, 128]
    assert len(column) == 2
