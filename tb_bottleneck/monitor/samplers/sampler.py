"""What a sampler gives: readings of named signals, and reasons for those that cannot be had."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tb_bottleneck.schema.signals import HOST


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one signal, in the unit that `schema.series.SERIES` declares for its name."""

    name: str
    value: float
    device: str = HOST
    """The GPU's UUID, or HOST."""


class Sampler(Protocol):
    """A source of readings, asked again and again by the monitor's own thread.

    `read` may raise; then the monitor drops this sampler with one note and the others go on.
    """

    every_s: float
    """How long to wait between two readings, at the least."""

    def read(self) -> Iterable[Reading]:
        """The readings of this moment; a signal that gave nothing is left out, never zero."""
        ...

    def missing(self) -> Mapping[str, str]:
        """Signals that this machine cannot give: name to one sentence that says why."""
        ...

    def close(self) -> None:
        """Gives back what was opened. It may be called twice."""
        ...
