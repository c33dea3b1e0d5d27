"""Reads what was added to an event file of our monitor since the last look."""

import os
from collections import Counter
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event

from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext
from tb_bottleneck.sources.event_files import TAGS
from tb_bottleneck.sources.tfrecord import FOOTER, Records

AT_ONCE = 16 << 20
"""Bytes that one call takes from the file, so that whoever asks can do something else in between."""


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
            if any(tag in body for tag in TAGS) and self._records.is_sound(body):
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
