"""Plain records, and measures: one number with its unit, count and evidence source, or the reason why it is missing.

`class Name(Record, frozen=True)` defines a record like a frozen dataclass. Python 3.11 takes 0.3 ms to define a frozen
dataclass, and 0.01 ms for a struct of msgspec; a diagnosis needs a hundred of them. Objects of which TensorBoard's own
process has thousands are records with gc=False: the garbage collector does not look at them.
"""

from dataclasses import dataclass

from msgspec import Struct as Record
from msgspec.structs import replace

__all__ = ["Record", "replace"]


@dataclass(frozen=True)
class Measure:
    """A measured number.

    `unit` is the unit of `value`, such as ns, share, count, bytes or text. `per` is what the value refers to (such as
    step, window or call), or empty. `count` is the number of occurrences that the value is based on. `source` is the
    source of the evidence: trace, telemetry, context or both. For a text, `unit` is "text", `text` is the content, and
    `value` is `count`. `begin` and `end` (ns on the recording's clock) are the time of a typical occurrence, or None.
    """

    value: float
    unit: str
    per: str = ""
    count: int = 1
    source: str = "trace"
    text: str = ""
    begin: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        """Limits shares to the range 0 to 1. Sums over the overlapping rows of a damaged file can exceed 1.

        Shares of a roof (the peak of a device) are not limited: a roof is an estimate, and kernels can exceed it.
        """
        if self.unit == "share" and self.per != "roof":
            object.__setattr__(self, "value", share_between(self.value))


def share_between(value: float) -> float:
    """Returns `value` limited to the range 0 to 1; 0 for NaN."""
    return min(value, 1.0) if value > 0 else 0.0


class Missing(Record, frozen=True):
    """A measure without a value. `because` is the reason for the user: it names the signal that is missing in the
    recording."""

    because: str


def text_measure(text: str, count: int = 1, begin: int | None = None, end: int | None = None) -> Measure:
    """Returns a measure whose content is `text`. `count`, `begin` and `end` are as in Measure. Its value is `count`."""
    return Measure(float(count), "text", count=count, text=text, begin=begin, end=end)


def known_value(measure: Measure | Missing) -> float | None:
    """Returns the value of `measure`, or None if `measure` is Missing."""
    return measure.value if isinstance(measure, Measure) else None
