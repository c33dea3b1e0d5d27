"""Units of traces are converted exactly; figures become text."""

from decimal import Decimal

import pytest

from tb_bottleneck.base.text import bytes_text, duration_text, rate_text, share_text, us_to_ns


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
