"""Reads the messages that the monitor appended to an event file since the last read."""

import os
from collections import Counter
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event

from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext
from tb_bottleneck.sources.telemetry.event_files import TAGS
from tb_bottleneck.sources.telemetry.tfrecord import FOOTER, Records

AT_ONCE = 16 << 20
"""Bytes that one call of `read` reads at most. The caller can do something else between two calls."""


@dataclass(frozen=True)
class Piece:
    """The messages that one read of the file returned, in file order."""

    messages: tuple[RunContext | Packet, ...]
    restarted: bool = False
    """True if the file was replaced since the last read, so that earlier messages are invalid."""

    more: bool = False
    """True if the next read can return more messages without waiting for new data."""


class SeriesFile:
    """Reads one event file of the monitor. Each read returns only what was added since the last read. Not thread-safe.

    The file must be a regular file. If `follow_links` is False, no part of its absolute path may be a link."""

    def __init__(self, path: str, follow_links: bool = True) -> None:
        self.path = path
        self._follow_links = follow_links
        self._records = Records(path, follow_links=follow_links)
        self._dropped: Counter[str] = Counter()
        self._file = -1
        self.size = 0  # bytes, at the last read

    @property
    def read_bytes(self) -> int:
        """Bytes of the file that were read so far."""
        return self._records.offset

    @property
    def dropped(self) -> Counter[str]:
        """Number of unusable records by reason: damaged, too_large or not_understood."""
        return self._records.dropped + self._dropped

    def read(self, at_most: int = AT_ONCE) -> Piece:
        """Returns the messages that were appended since the last read. Reads about `at_most` bytes.

        Raises:
            OSError: the file cannot be read.
        """
        status = os.stat(self.path)
        restarted = self._file not in (-1, status.st_ino) or status.st_size < self._records.offset
        if restarted:
            self._records, self._dropped = Records(self.path, follow_links=self._follow_links), Counter()
        self._file, self.size = status.st_ino, status.st_size
        messages: list[RunContext | Packet] = []
        before = self._records.offset
        for body in self._records.read(at_most):
            if any(tag in body for tag in TAGS) and self._records.is_valid(body):
                messages += self._messages(body[:-FOOTER])
        after = self._records.offset
        return Piece(tuple(messages), restarted, more=before < after < status.st_size)

    def _messages(self, content: bytes) -> list[RunContext | Packet]:
        messages: list[RunContext | Packet] = []
        try:
            values = Event.FromString(content).summary.value
            for value in values:
                if value.tag == CONTEXT_TAG:
                    messages.append(RunContext.FromString(value.tensor.string_val[0]))
                elif value.tag == PACKET_TAG:
                    messages.append(Packet.FromString(value.tensor.string_val[0]))
        except (DecodeError, IndexError):
            self._dropped["not_understood"] += 1
            self._records.wasted += len(content)
        return messages
