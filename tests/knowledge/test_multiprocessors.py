"""Counts of multiprocessors are of devices in the table, one each, and agree with what the formula gives."""

from collections import Counter

import pytest

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.knowledge.gpus import entries
from tb_bottleneck.knowledge.multiprocessors import multiprocessors_of

COUNTS = load("multiprocessors.toml")["count"]
NAMES = {entry.gpu.name: entry.gpu for entry in entries()}


def test_each_device_is_in_the_table_and_counted_once():
    counted = Counter(name for entry in COUNTS for name in entry["of"])
    assert counted.keys() <= NAMES.keys()
    assert set(counted.values()) == {1}


@pytest.mark.parametrize("name", sorted(name for entry in COUNTS for name in entry["of"]))
def test_a_count_is_one_that_a_device_with_such_a_peak_can_have(name):
    """fp32 operations per clock and multiprocessor are 128 or 256: the clock that follows is one that is built."""
    tflops, count = NAMES[name].tflops["fp32"], multiprocessors_of(name)
    clocks = [tflops * 1e12 / count / per_clock / 1e9 for per_clock in (128, 256)]
    assert any(0.8 <= clock <= 2.7 for clock in clocks), clocks


def test_a_device_that_nobody_counted_has_none():
    assert multiprocessors_of("ACME 1") is None
