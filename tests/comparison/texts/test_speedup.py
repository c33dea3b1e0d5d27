"""Ratios as a person says them."""

import pytest

from tb_bottleneck.comparison.texts.speedup import ratio_text, speedup_range_text, speedup_text, time_text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.48, "0.48"), (2.456, "2.46"), (9.996, "10.0"), (20.36, "20.4"), (273.6, "274")],
)
def test_three_digits_say_enough(ratio, text):
    assert ratio_text(ratio) == text


def test_what_is_faster_is_told_by_its_speed():
    assert speedup_range_text(2.46, 1.58, 2.93) == "2.46 times the speed (1.58 to 2.93)"


def test_what_is_slower_is_told_by_its_time_with_the_interval_turned():
    assert speedup_range_text(0.25, 0.2, 0.5) == "4.00 times the time (2.00 to 5.00)"
    assert speedup_text(0.25) == "4.00 times the time"


def test_a_difference_that_any_two_runs_have_is_none():
    assert speedup_range_text(1.01, 0.9, 1.1) == "about the same speed (0.90 to 1.10 times)"
    assert speedup_text(0.99) == "about the same speed"


def test_no_time_is_nothing():
    assert time_text(0.2) == "nothing"
    assert time_text(1_500_000) == "1.50 ms"
