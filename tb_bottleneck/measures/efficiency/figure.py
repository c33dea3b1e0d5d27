"""A figure of efficiency: its value and where it comes from, or the reason why it is not known."""

from collections.abc import Mapping

from tb_bottleneck.base.measure import Record


class Figure(Record, frozen=True):
    """`value` is in the unit of its entry in knowledge/efficiency.toml, None if it is not known.

    `text` is the key of a sentence there: the basis of the value, or why there is none; `values` has its figures.
    """

    value: float | None
    text: str
    values: Mapping[str, str] = {}


Figures = dict[str, Figure]
"""By field of the message Efficiency."""


def known(value: float, text: str, **values: str) -> Figure:
    """Returns a figure with a value."""
    return Figure(value, text, values)


def unknown(text: str, **values: str) -> Figure:
    """Returns a figure without a value."""
    return Figure(None, text, values)
