"""Reads a file as blocks of plain (uncompressed) bytes, inflates gzip, zstd and lz4, and reports how the file ended.

Reading is limited, so that a malicious or damaged file cannot use up the memory or take hours. This module also finds
where the list of events begins and ends in a trace, and where the list can be cut between two events.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from tb_bottleneck.base.errors import Inaccessible, NotFound, StillGrowing, TooLarge, Unreadable
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.sources.compressed_frames import Frames, frames_of
from tb_bottleneck.sources.file_system import Status
from tb_bottleneck.sources.lenient import FIRST_KEYS
from tb_bottleneck.sources.paths import filesystem_of


@dataclass(frozen=True)
class Bounds:
    """Limits for reading a file, in bytes; `malformed` and `events` are numbers of events. Tests use smaller limits."""

    block: int = 1 << 18
    """Plain bytes that are decoded at once. The events of a block stay in the CPU caches while columns are built.
    Measured on traces of 222 and 501 MB: with a block a quarter or four times as large, reading is a sixth to a half
    slower."""

    inflated: int = 16 << 30
    """Size of the uncompressed file. The largest trace that users report is 10 GB (pytorch/kineto#622)."""

    header: int = 16 << 20
    """Text before or after the list of events. With a few thousand processes and devices, this text has a few
    megabytes."""

    event: int = 16 << 20
    """One event with its name and arguments. The limit is a thousand times the size of the largest known event. A
    larger event is skipped and counted."""

    malformed: int = 100_000
    """Events that cannot be read. Each takes 20 times as long as a valid event. A file is refused if the number of its
    unreadable events exceeds both this limit and the number of its valid events."""

    events: int = 40_000_000
    """All events of a file. Their columns have 4 GB, at about 100 bytes per event."""


BOUNDS = Bounds()


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LIST_FORM = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + FIRST_KEYS.encode() + rb")")
END_AFTER_EVENT = re.compile(rb"\}\s*\]\s*\}?\s*\Z")
# The last boundary between two events of a block is first searched in this many bytes at the end of the block.
_END_OF_BLOCK = 1 << 12
# Bytes at the end of a block that are searched again with the next block: a boundary may extend over both blocks.
OVERLAP = 1 << 10


def may_be_json(head: bytes) -> bool:
    """Returns True if `head`, the first bytes of a file, can be the start of a JSON object.

    A byte order mark and white space may come before the object."""
    start = head[:OVERLAP].removeprefix(_BYTE_ORDER_MARK).lstrip()
    return start.startswith(b"{") or (len(head) < OVERLAP and _BYTE_ORDER_MARK.startswith(start))


def last_boundary(data: bytes, begin: int) -> re.Match[bytes] | None:
    """Returns the last match of BOUNDARY, which separates two events, at or after `begin`; None if there is none."""
    for start in (max(len(data) - _END_OF_BLOCK, begin), begin):
        if boundaries := list(BOUNDARY.finditer(data, start)):
            return boundaries[-1]
    return None


try:
    from zlib_ng import zlib_ng as _zlib
except ImportError:  # no wheel for this platform; zlib took 3.4 times as long (0.53 s against 0.15 s for 500 MB)
    import zlib as _zlib  # type: ignore[no-redef]

zlib: Any = _zlib  # both have the same interface but different types

GZIP_MAGIC = b"\x1f\x8b"
_MAGIC_BYTES = 4
# The blocks read from a compressed file are smaller by this factor, because traces compress about 15 times.
_ZIPPED_PART = 4
# torch writes a `.gz` file to storage without pauses. A file that did not change for this long is complete.
SETTLED_S = 5.0


class Blocks:
    """One pass over the content of a file, as blocks of plain bytes. Iterate once. The attributes give the progress
    and, afterwards, how the file ended.

    The format is recognised by the magic number in the file, not by the file name. Several gzip members in a row are
    one stream (RFC 1952 §2.2); other data after the last member are ignored, as gzip does. If a compressed stream ends
    early or is damaged, the content before that place is yielded, and `truncated` is set to a description; else
    `truncated` is empty. `bytes_read` and `bytes_total` count the bytes in the file, `inflated` counts the plain bytes.

    `clock` returns the time in s since 1970, and `stat` the status of the open file."""

    def __init__(
        self,
        path: str,
        bounds: Bounds = BOUNDS,
        clock: Callable[[], float] = time.time,
        stat: Callable[[BinaryIO], Status] | None = None,
    ) -> None:
        self.path = path
        self.bounds = bounds
        self.bytes_read = 0
        self.bytes_total = 0
        self.inflated = 0
        self.truncated = ""
        self._clock = clock
        storage = filesystem_of(path)
        self._open = storage.open
        self._stat = stat or partial(storage.status, path)
        self._written_s_ago = float("inf")
        self._grew = False
        self._closed = False  # True if the compressed stream is complete, or is damaged before its end

    def __iter__(self) -> Iterator[bytes]:
        """Yields blocks of at most `bounds.block` plain bytes. Raises NotFound, Unreadable, Inaccessible, TooLarge."""
        if "\0" in self.path:
            raise NotFound(f"No file can have this name: {self.path!r}")
        try:
            with self._open(self.path) as file:
                before = self._stat(file)
                self.bytes_total = before.size
                start = file.read(_MAGIC_BYTES)
                file.seek(0)
                try:
                    yield from self._bounded(self._plain(file, start))
                finally:
                    after = self._stat(file)
                    self._grew = (after.size, after.tag) != (before.size, before.tag)
                    # If this clock is behind the file server's, the age is negative: this also means a recent write.
                    self._written_s_ago = abs(self._clock() - after.mtime_ns / NS_PER_S)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound("No such file (any more).") from error
        except IsADirectoryError as error:
            raise Unreadable("Is a directory: `tb-bottleneck diagnose DIR` reads all recordings in it.") from error
        except OSError as error:
            raise Inaccessible(f"The file cannot be read: {error.strerror or error}.") from error

    def refuse_growing(self) -> None:
        """Raises StillGrowing if the missing end of the file may still be written.

        Call this method after the iteration, if the content is incomplete. The end may still be written if the file
        changed while it was read, or if the last change was less than SETTLED_S seconds ago. In the second case, a
        compressed file with a complete or damaged stream is an exception: nothing will be added to such a file."""
        if self._grew:
            raise StillGrowing("It grew while it was read: read it again later.")
        if self._written_s_ago < SETTLED_S and not self._closed:
            raise StillGrowing(
                f"It was written to {self._written_s_ago:.0f} s ago, so the rest may follow: read it again "
                f"{SETTLED_S:.0f} s after the last change."
            )

    def _bounded(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in filter(None, blocks):
            self.inflated += len(block)
            if self.inflated > self.bounds.inflated:
                raise TooLarge(
                    f"The file is larger than {self.bounds.inflated / (1 << 30):.3g} GiB uncompressed, which is the "
                    "limit. Record fewer steps, or turn with_stack off."
                )
            yield block

    def _plain(self, file: BinaryIO, start: bytes) -> Iterator[bytes]:
        size = self.bounds.block
        if start.startswith(GZIP_MAGIC):
            return self._inflate(file, size)
        frames = frames_of(start)
        return self._raw(file, size) if frames is None else self._inflate_frames(file, size, frames)

    def _inflate_frames(self, file: BinaryIO, size: int, frames: Frames) -> Iterator[bytes]:
        held: list[bytes] = []
        length = 0
        try:
            for part in frames.inflate(self._raw(file, max(size // _ZIPPED_PART, 1))):
                held.append(part)
                length += len(part)
                if length >= size:
                    data = b"".join(held)
                    yield from (data[at : at + size] for at in range(0, length - size + 1, size))
                    held = [data[length - length % size :]]
                    length %= size
        except ValueError as error:
            self.truncated, self._closed = f"the {frames.name} stream is damaged ({error})", True
        else:
            self.truncated = "" if frames.complete else f"the {frames.name} stream ends early"
            self._closed = frames.complete
        yield b"".join(held)

    def _raw(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        while block := file.read(size):
            self.bytes_read += len(block)
            yield block

    def _inflate(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        inflater = before = zlib.decompressobj(wbits=31)
        rest = b""
        try:
            for rest in self._raw(file, max(size // _ZIPPED_PART, 1)):
                while rest:
                    if inflater.eof:
                        self._closed = True
                        rest = rest.lstrip(b"\0")  # padding between or after members
                        if not rest:
                            break
                        if not GZIP_MAGIC.startswith(rest[: len(GZIP_MAGIC)]):
                            return
                        inflater, self._closed = zlib.decompressobj(wbits=31), False
                    before = inflater.copy()
                    yield inflater.decompress(rest, size)
                    rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        except zlib.error as error:
            what = str(error).rpartition(": ")[2]
            self.truncated, self._closed = f"the gzip stream is damaged ({what})", True
            yield _inflated_before_error(before, rest)
            return
        self._closed = inflater.eof
        if not inflater.eof:
            self.truncated = "the gzip stream ends early"
            yield inflater.flush()


def _inflated_before_error(inflater: Any, data: bytes) -> bytes:
    """Returns `data` inflated up to the byte that zlib refuses. The bytes are passed one by one, because zlib would
    return nothing if it got all data in one call."""
    parts = []
    with suppress(zlib.error):
        for at in range(len(data)):
            parts.append(inflater.decompress(data[at : at + 1]))
    return b"".join(parts)
