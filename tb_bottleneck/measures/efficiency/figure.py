"""A figure of efficiency: its value and where it comes from, or the reason why it is not known."""

from collections.abc import Mapping

from tb_bottleneck.base.measure import Record


class Figure(Record, frozen=True):
    """A figure of efficiency. `value` is in the unit that knowledge/efficiency.toml states; None if the value is not
    known.

    `text` is the key of a sentence in that file. The sentence states the source of the value, or the reason why the
    value is not known. `values` fills the placeholders of the sentence.
    """

    value: float | None
    text: str
    values: Mapping[str, str] = {}


Figures = dict[str, Figure]
"""Figures by name. The names are those of the fields of the message Efficiency."""


def known(value: float, text: str, **values: str) -> Figure:
    """Returns a figure with the value `value`. `text` and `values` are as in Figure."""
    return Figure(value, text, values)


def unknown(text: str, **values: str) -> Figure:
    """Returns a figure without a value. `text` and `values` state the reason, as in Figure."""
    return Figure(None, text, values)
