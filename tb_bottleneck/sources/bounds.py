"""How much of a file is read at most, so that a hostile or a hopeless one costs neither the memory nor the day."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """All in bytes, but for `events`. The tests make them small."""

    block: int = 1 << 18
    """Read at once. Measured on a trace of 500 MB: with an eighth of it a third slower, with twice of it no faster."""

    inflated: int = 16 << 30
    """The largest trace that users report is 10 GB (pytorch/kineto#622)."""

    header: int = 16 << 20
    """The head or the tail around the events: those of a few thousand processes and devices are a few megabytes."""

    event: int = 16 << 20
    """One event: a name and arguments; a thousand times the largest seen. A larger one is skipped and counted."""

    events: int = 40_000_000
    """4 GB of columns at about 100 bytes an event."""


BOUNDS = Bounds()
