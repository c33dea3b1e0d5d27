"""Limits for reading a file, so that a malicious or damaged one costs neither memory nor hours."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """Limits in bytes, except `malformed` and `events`. Tests use smaller ones."""

    block: int = 1 << 18
    """Plain bytes that are decoded at once. Their events stay in the CPU caches while columns are built. Measured on
    traces of 222 and 501 MB: a quarter or four times as much is a sixth to a half slower."""

    inflated: int = 16 << 30
    """Uncompressed size. The largest trace that users report is 10 GB (pytorch/kineto#622)."""

    header: int = 16 << 20
    """Text before or after the events. With a few thousand processes and devices it has a few megabytes."""

    event: int = 16 << 20
    """One event with name and arguments; a thousand times the largest known. A larger one is skipped and counted."""

    malformed: int = 100_000
    """Events that cannot be read. Each takes 20 times as long as a valid one; a file with more of them than of valid
    ones is refused."""

    events: int = 40_000_000
    """4 GB of columns at about 100 bytes per event."""


BOUNDS = Bounds()
