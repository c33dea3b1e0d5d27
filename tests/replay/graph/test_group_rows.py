"""Rows by key, in their own order."""

import time

import numpy as np

from tb_bottleneck.trace.table import rows_by_key


def test_rows_come_key_by_key_and_in_order():
    found = [rows.tolist() for rows in rows_by_key(np.array([5, 2, 5, 2, 9]))]
    assert found == [[1, 3], [0, 2], [4]]


def test_no_rows_make_no_group():
    assert list(rows_by_key(np.empty(0, np.int64))) == []


def test_as_many_groups_as_rows_take_no_square_of_time():
    began = time.process_time()
    assert sum(len(rows) for rows in rows_by_key(np.arange(200_000))) == 200_000
    assert time.process_time() - began < 20
