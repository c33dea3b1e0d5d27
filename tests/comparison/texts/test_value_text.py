"""Ratios and durations in texts; untrusted values cannot move a terminal, fill it, or take long to print."""

import pytest

from tb_bottleneck.comparison.texts.value_text import (
    MAX_VALUE_LENGTH,
    ratio_text,
    sanitize,
    speedup_range_text,
    speedup_text,
    time_text,
)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.48, "0.48"), (2.456, "2.46"), (9.996, "10.0"), (20.36, "20.4"), (273.6, "274")],
)
def test_three_digits_suffice(ratio, text):
    assert ratio_text(ratio) == text


def test_a_faster_run_is_described_by_its_speed():
    assert speedup_range_text(2.46, 1.58, 2.93) == "2.46 times the speed (1.58 to 2.93)"


def test_a_slower_run_is_described_by_its_time_with_the_interval_inverted():
    assert speedup_range_text(0.25, 0.2, 0.5) == "4.00 times the time (2.00 to 5.00)"
    assert speedup_text(0.25) == "4.00 times the time"


def test_a_difference_that_any_two_runs_have_is_none():
    assert speedup_range_text(1.01, 0.9, 1.1) == "about the same speed (0.90 to 1.10 times)"
    assert speedup_text(0.99) == "about the same speed"


def test_no_time_is_nothing():
    assert time_text(0.2) == "nothing"
    assert time_text(1_500_000) == "1.50 ms"


def test_control_characters_become_spaces():
    assert sanitize("a\x1b[2Jb\nc\u202ed") == "a[2Jb cd"


def test_a_long_name_is_cut_off_at_its_end():
    assert sanitize("x" * 5000) == "x" * (MAX_VALUE_LENGTH - 1) + "…"
    assert sanitize("x" * MAX_VALUE_LENGTH) == "x" * MAX_VALUE_LENGTH


def test_a_number_of_thousands_of_digits_is_not_spelt_out():
    assert sanitize(10**5000) == "an impossibly large number"
    assert sanitize(-5) == "-5"
