"""Recognises TensorBoard event files, and the event files that the monitor wrote."""

import os
from functools import lru_cache

from tb_bottleneck.base.persistence import open_regular
from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG

SNIFFED_BYTES = 64 * 1024
"""Bytes at the start of an event file that are searched for the monitor's tags. The monitor writes a tag first."""


TAGS = (CONTEXT_TAG.encode(), PACKET_TAG.encode())


def is_event_file(path: str) -> bool:
    """Returns True if TensorBoard reads the file as an event file because of its name. Returns False for a name that
    ends like the name of a trace."""
    name = os.path.basename(path)
    return "tfevents" in name and not name.endswith((".json", ".gz"))


def holds_telemetry(path: str, size: int) -> bool:
    """Returns True if the monitor wrote the event file at `path`, which has `size` bytes. Raises OSError if the file
    cannot be read."""
    # The result is cached by this size: a growing file is read again only until the searched part is complete.
    return _looks_like_ours(path, min(size, SNIFFED_BYTES))


@lru_cache(maxsize=65536)
def _looks_like_ours(path: str, size: int) -> bool:
    with open_regular(path) as file:
        head = file.read(size)
    return any(tag in head for tag in TAGS)
