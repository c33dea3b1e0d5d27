"""Tests that units are converted exactly, that figures become text, and that text of others is safe to show.

Such text is on one line, without characters that control a terminal, and without markup in Markdown.
"""

from decimal import Decimal

import pytest
from google.protobuf import json_format

from tb_bottleneck.base.units import bytes_text, duration_text, one_line, rate_text, share_text, us_to_ns
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.schema.bottleneck_pb2 import Device, Report


@pytest.mark.parametrize(
    ("us", "ns"), [(3, 3000), (0.0015, 2), (Decimal("1751410836000000.123"), 1751410836000000123), (-2.5, -2500)]
)
def test_microseconds_become_whole_nanoseconds(us, ns):
    assert us_to_ns(us) == ns


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (850, "850 ns"),
        (1_000, "1.00 µs"),
        (53_000_000, "53.0 ms"),
        (187_900_000, "188 ms"),
        (2.5e9, "2.50 s"),
        (-53_000_000, "-53.0 ms"),
    ],
)
def test_durations_read_with_three_digits(ns, text):
    assert duration_text(ns) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (0.032, "3.2 %"), (0.0996, "10 %"), (0.41, "41 %"), (1, "100 %")]
)
def test_shares_read_as_percents(share, text):
    assert share_text(share) == text


@pytest.mark.parametrize(("count", "text"), [(12, "12 B"), (53_100_000, "53.1 MB"), (1e9, "1.0 GB")])
def test_bytes_read_in_powers_of_a_thousand(count, text):
    assert bytes_text(count) == text


def test_a_bandwidth_is_bytes_in_a_second():
    assert rate_text(12_600_000_000) == "12.6 GB/s"
    assert rate_text(0) == "0 B/s"


HOSTILE = "a\x1b]0;owned\x07\x9b2J\r\nb\u202ec\u2028d\x00\ue000"


def test_controls_are_removed_and_white_space_is_a_space() -> None:
    assert one_line(HOSTILE) == "a]0;owned2J  bc d"
    assert one_line("aten::add  é") == "aten::add  é"
    assert one_line(7) == "7"


def test_long_text_is_cut() -> None:
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


def test_json_is_safe_to_print_and_means_the_same() -> None:
    name = HOSTILE.removesuffix("\ue000")
    text = as_json(Report(device=Device(name=name)))
    assert text.isprintable()
    assert json_format.Parse(text, Report()).device.name == name
