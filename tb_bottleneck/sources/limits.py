"""How much of a file is read at most, so that a hostile or a hopeless one costs neither the memory nor the day."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """All in bytes, but for `events`. The tests make them small."""

    block: int = 1 << 18
    """Plain bytes that are decoded at once: their events stay in the processor's caches while columns are made of them.
    Measured on traces of 222 and 501 MB: with a quarter or with four times as much a sixth to a half slower."""

    inflated: int = 16 << 30
    """The largest trace that users report is 10 GB (pytorch/kineto#622)."""

    header: int = 16 << 20
    """The head or the tail around the events: those of a few thousand processes and devices are a few megabytes."""

    event: int = 16 << 20
    """One event: a name and arguments; a thousand times the largest seen. A larger one is skipped and counted."""

    events: int = 40_000_000
    """4 GB of columns at about 100 bytes an event."""


BOUNDS = Bounds()
