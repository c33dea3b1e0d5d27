"""Figures of a Report for people: values of evidence in their units, and how many times as fast."""

from collections.abc import Callable

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import bytes_text, duration_text, rate_text, share_text

_SHOWN: dict[str, Callable[[float], str]] = {
    "ns": duration_text,
    "share": share_text,
    "bytes": bytes_text,
    "bytes_per_s": rate_text,
}
# From here on a fraction of a count is noise: 3,422.4 operators are 3,422.
WHOLE_FROM = 100.0
# Simulated gains are good for some percent (tests/GAINS.md): 6.59 times is 6.6, and 14.7 times is 15.
FEW_DIGITS_FROM, WHOLE_FACTOR_FROM = 1.995, 9.95


def value_text(row: pb.Evidence) -> str:
    """The value of a row of evidence, or its words."""
    if not row.HasField("value"):
        return row.text
    shown = _SHOWN.get(row.unit)
    return shown(row.value) if shown is not None else count_text(row.value)


def count_text(count: float) -> str:
    """A number of things: one digit behind the point where it is small, as "2.4" or "3,422"."""
    return f"{count:,.0f}" if abs(count) >= WHOLE_FROM else f"{count:,.1f}".removesuffix(".0")


def factor_text(factor: float, digits: int | None = None) -> str:
    """How many times as fast, in as many digits as a simulation is good for: "1.24x", "6.6x", "15x"."""
    fitting = 1 if factor >= FEW_DIGITS_FROM else 2
    return f"{factor:.{0 if factor >= WHOLE_FACTOR_FROM else digits or fitting}f}x"


def bounds_text(low: float, high: float) -> str:
    """Both bounds of a factor in the digits that the higher one is good for, as "1.2 to 2.1"."""
    digits = 1 if high >= FEW_DIGITS_FROM else 2
    return " to ".join(factor_text(bound, digits).removesuffix("x") for bound in (low, high))


def small_share_text(share: float) -> str:
    """A share that may be next to nothing, as "less than 0.1 %"."""
    return share_text(share) if share >= 0.001 else "less than 0.1 %"
