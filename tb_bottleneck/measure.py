"""A measure: one number with its unit, its count and its witness; or the reason why there is none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A measured number.

    `unit` is ns, share, count, bytes or text; `per` says of what (step, window, call, or nothing). `count` is how many
    occurrences it rests on. `begin`/`end` (ns on the recording's clock) point at a typical occurrence. For words,
    `unit` is text and the words are in `text`.
    """

    value: float
    unit: str
    per: str = ""
    count: int = 1
    source: str = "trace"
    text: str = ""
    begin: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Missing:
    """No number: `because` names the signal that is not in the recording."""

    because: str


def text_measure(text: str, count: int = 1, begin: int | None = None, end: int | None = None) -> Measure:
    """A measure that is a name or a phrase rather than a number; `begin`/`end` point at where it can be seen."""
    return Measure(float(count), "text", count=count, text=text, begin=begin, end=end)
