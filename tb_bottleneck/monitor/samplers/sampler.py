"""The interface of samplers: readings of named signals, and reasons for missing ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tb_bottleneck.schema.signals import HOST


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one signal, in the unit that `schema.signals.SERIES` declares for its name."""

    name: str
    value: float
    device: str = HOST
    """The GPU's UUID, or HOST."""


class Sampler(Protocol):
    """A source of readings that the monitor's own thread reads repeatedly.

    `read` may raise; then the monitor removes this sampler with one note, and the others continue.
    """

    every_s: float
    """The minimum interval between two readings, in seconds."""

    def read(self) -> Iterable[Reading]:
        """Returns the present readings. A signal without a value is missing, never zero."""
        ...

    def missing(self) -> Mapping[str, str]:
        """Returns the signals that this machine does not have, each with the reason in one sentence."""
        ...

    def close(self) -> None:
        """Releases what was opened. May be called twice."""
        ...
