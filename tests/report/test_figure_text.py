"""Tests of the formats of figures: no more digits than their accuracy supports, and no NaN in JSON.

NaN is refused before it becomes a string.
"""

import pytest

from tb_bottleneck.report.figure_text import (
    bounds_text,
    count_text,
    factor_text,
    gain_range_text,
    lines_text,
    small_share_text,
    value_text,
)
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.schema import bottleneck_pb2 as pb


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_is_refused_at_any_depth(number):
    report = pb.Report(account=[pb.AccountRow(regime="input", share=number)])
    with pytest.raises(ValueError, match=r"AccountRow\.share"):
        as_json(pb.Reports(reports=[report]))


def test_a_repeated_number_or_word_is_accepted():
    assert as_json(pb.Host(number=1, ranks=[0, 1])) == '{"number":1,"ranks":[0,1]}'


@pytest.mark.parametrize(
    ("factor", "text"),
    [(1.0, "1.00x"), (1.237, "1.24x"), (1.996, "2.0x"), (6.59, "6.6x"), (9.96, "10x"), (14.7, "15x")],
)
def test_a_gain(factor, text):
    assert factor_text(factor) == text


@pytest.mark.parametrize(
    ("low", "high", "text"), [(1.0, 1.32, "1.00 to 1.32"), (1.214, 2.14, "1.2 to 2.1"), (1.88, 15.1, "1.9 to 15")]
)
def test_both_bounds_have_the_digits_of_the_higher_one(low, high, text):
    assert bounds_text(low, high) == text


def test_a_wide_interval_has_no_expected_value():
    assert gain_range_text(1.5, 1.0, 1.9) == ("1.50x", "1.00 to 1.90")
    assert gain_range_text(3.4, 1.8, 5.7) == ("1.8 to 5.7x", "measure it")


@pytest.mark.parametrize(("count", "text"), [(3_422.4, "3,422"), (99.96, "100"), (2.4, "2.4"), (2.0, "2"), (0.0, "0")])
def test_a_count(count, text):
    assert count_text(count) == text


def test_a_very_small_share_is_not_shown_as_zero():
    assert (small_share_text(0.00001), small_share_text(0.009)) == ("less than 0.1 %", "0.9 %")


def test_a_row_without_a_value_shows_its_text():
    assert value_text(pb.Evidence(unit="text", text="aten::item")) == "aten::item"
    assert value_text(pb.Evidence(unit="ns", value=1.5e6)) == "1.50 ms"


@pytest.mark.parametrize(
    ("hottest", "others", "text"),
    [
        ((0, 0.0), [], ""),
        ((4, 0.5), [], ", most in line 4 (50%)"),
        ((4, 0.5), [(3, 0.25)], ", most in line 4 (50%), then line 3 (25%)"),
        ((0, 0.0), [(3, 0.25), (7, 0.2)], ", then lines 3 (25%), 7 (20%)"),
    ],
)
def test_the_costliest_lines_of_a_place(hottest, others, text):
    line, share = hottest
    place = pb.Place(hottest_line=line, hottest_share=share)
    for number, part in others:
        place.other_lines.add(line=number, share=part)
    assert lines_text(place).replace("\N{NO-BREAK SPACE}", "").replace(" %", "%") == text
