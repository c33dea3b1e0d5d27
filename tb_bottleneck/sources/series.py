"""Finds the event files that hold our telemetry, and reads what was added to one since the last look."""

import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event

from tb_bottleneck.schema.series import CONTEXT_TAG, PACKET_TAG
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext
from tb_bottleneck.sources.records import FOOTER, Records

SNIFFED_BYTES = 64 * 1024
"""How much of an event file is searched for our tags: the monitor writes the run's context first of all."""

AT_ONCE = 16 << 20
"""Bytes that one call takes from the file, so that whoever asks can do something else in between."""

_EVENT_FILE = re.compile(r"tfevents")
_TAGS = (CONTEXT_TAG.encode(), PACKET_TAG.encode())


def is_event_file(path: str) -> bool:
    """Whether TensorBoard would take it for an event file by its name, and a trace's name says nothing else."""
    name = os.path.basename(path)
    return bool(_EVENT_FILE.search(name)) and not name.endswith((".json", ".gz"))


def holds_telemetry(path: str, size: int) -> bool:
    """Whether our monitor wrote this event file. Raises OSError where it cannot be read."""
    # A file that grows is looked at again only until its beginning is whole.
    return _looks_like_ours(path, min(size, SNIFFED_BYTES))


@lru_cache(maxsize=65536)
def _looks_like_ours(path: str, size: int) -> bool:
    with open(path, "rb") as file:
        head = file.read(size)
    return any(tag in head for tag in _TAGS)


@dataclass(frozen=True)
class Piece:
    """What one look added, in the order of the file."""

    messages: tuple[RunContext | Packet, ...]
    restarted: bool = False
    """The file is another one than at the last look: what was given before is void."""

    more: bool = False
    """There is more to read at once."""


class SeriesFile:
    """One event file of ours, read bit by bit. Not for several threads at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._records = Records(path)
        self._dropped: Counter[str] = Counter()
        self._file = -1
        self.size = 0  # bytes, at the last look

    @property
    def read_bytes(self) -> int:
        """How far the file was read."""
        return self._records.offset

    @property
    def dropped(self) -> Counter[str]:
        """Records that were there and could not be used, by reason: damaged | too_large | not_understood."""
        return self._records.dropped + self._dropped

    def read(self, at_most: int = AT_ONCE) -> Piece:
        """What was added since the last look.

        Raises:
            OSError: the file cannot be read.
        """
        status = os.stat(self.path)
        restarted = self._file not in (-1, status.st_ino) or status.st_size < self._records.offset
        if restarted:
            self._records, self._dropped = Records(self.path), Counter()
        self._file, self.size = status.st_ino, status.st_size
        messages: list[RunContext | Packet] = []
        before = self._records.offset
        for body in self._records.read(at_most):
            if any(tag in body for tag in _TAGS) and self._records.is_sound(body):
                messages += self._messages(body[:-FOOTER])
        after = self._records.offset
        return Piece(tuple(messages), restarted, more=before < after < status.st_size)

    def _messages(self, content: bytes) -> list[RunContext | Packet]:
        found: list[RunContext | Packet] = []
        try:
            values = Event.FromString(content).summary.value
            for value in values:
                if value.tag == CONTEXT_TAG:
                    found.append(RunContext.FromString(value.tensor.string_val[0]))
                elif value.tag == PACKET_TAG:
                    found.append(Packet.FromString(value.tensor.string_val[0]))
        except (DecodeError, IndexError):
            self._dropped["not_understood"] += 1
        return found
