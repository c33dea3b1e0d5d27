"""The interface of samplers: readings of named signals, and reasons for missing ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tb_bottleneck.schema.signals import HOST


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of the signal `name`, in the unit that `schema.signals.SERIES` declares for this name."""

    name: str
    value: float
    device: str = HOST
    """The GPU's UUID, or HOST."""


class Sampler(Protocol):
    """A source of readings that the monitor's own thread reads repeatedly.

    `read` may raise. The monitor then removes this sampler with one note, and the other samplers continue.
    """

    every_s: float
    """The minimum interval between two readings, in seconds."""

    def read(self) -> Iterable[Reading]:
        """Returns the current readings. A signal without a value is left out, and is not reported as zero."""
        ...

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for the signals that this machine does not have. A reason is one sentence."""
        ...

    def close(self) -> None:
        """Releases the resources of the sampler. May be called twice."""
        ...
