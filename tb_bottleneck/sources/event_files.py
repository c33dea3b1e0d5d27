"""Which files are TensorBoard's event files, and which of those our monitor wrote. They are read by series.py."""

import os
from functools import lru_cache

from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG

SNIFFED_BYTES = 64 * 1024
"""How much of an event file is searched for our tags: the monitor writes the run's context first of all."""

TAGS = (CONTEXT_TAG.encode(), PACKET_TAG.encode())


def is_event_file(path: str) -> bool:
    """Whether TensorBoard would take it for an event file by its name, and a trace's name says nothing else."""
    name = os.path.basename(path)
    return "tfevents" in name and not name.endswith((".json", ".gz"))


def holds_telemetry(path: str, size: int) -> bool:
    """Whether our monitor wrote this event file. Raises OSError where it cannot be read."""
    # A file that grows is looked at again only until its beginning is whole.
    return _looks_like_ours(path, min(size, SNIFFED_BYTES))


@lru_cache(maxsize=65536)
def _looks_like_ours(path: str, size: int) -> bool:
    with open(path, "rb") as file:
        head = file.read(size)
    return any(tag in head for tag in TAGS)
