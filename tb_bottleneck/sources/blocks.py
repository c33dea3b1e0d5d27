"""Reads a file as blocks of plain bytes, inflating gzip on the way, and says how the file ended.

Gzip is recognised by its magic number, not by the name: people rename files. Several gzip members in a row are one
stream (RFC 1952 §2.2). A member that ends early gives what it holds; `Blocks.truncated` then says so.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tb_bottleneck.errors import NotFound, TooLarge, Unreadable

BLOCK_BYTES = 1 << 19
GZIP_MAGIC = b"\x1f\x8b"
# The largest trace seen reported by users is 10 GB (pytorch/kineto#622); beyond this a file is hostile or hopeless.
MAX_INFLATED_BYTES = 16 << 30


class Blocks:
    """One pass over a file. Iterate it once; the attributes tell the progress, and afterwards the end."""

    def __init__(self, path: str, max_bytes: int = MAX_INFLATED_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.bytes_read = 0
        self.bytes_total = 0
        self.inflated = 0
        self.truncated = ""

    def __iter__(self) -> Iterator[bytes]:
        """Blocks of at most a few megabytes. Raises NotFound, Unreadable, TooLarge."""
        try:
            with Path(self.path).open("rb") as file:
                self.bytes_total = file.seek(0, 2)
                file.seek(0)
                first = file.read(BLOCK_BYTES)
                raw = self._raw(first, file)
                for block in self._inflate(raw) if first.startswith(GZIP_MAGIC) else raw:
                    self.inflated += len(block)
                    if self.inflated > self.max_bytes:
                        raise TooLarge(
                            f"The file inflates past {self.max_bytes >> 30} GiB, the most that is read; "
                            "record fewer steps, or turn with_stack off."
                        )
                    yield block
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(f"No such file: {self.path}") from error
        except OSError as error:
            raise Unreadable(f"The file cannot be read: {error.strerror or error}.") from error

    def _raw(self, first: bytes, file: BinaryIO) -> Iterator[bytes]:
        block = first
        while block:
            self.bytes_read += len(block)
            yield block
            block = file.read(BLOCK_BYTES)

    def _inflate(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        inflater = zlib.decompressobj(wbits=31)
        try:
            for block in raw:
                rest = block
                while rest:
                    if inflater.eof:
                        # Another member, or padding behind the last one; anything else is not gzip and ends the file.
                        rest = rest.lstrip(b"\0")
                        if not rest:
                            break
                        inflater = zlib.decompressobj(wbits=31)
                    yield inflater.decompress(rest, BLOCK_BYTES * 4)
                    rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        except zlib.error as error:
            self.truncated = f"the gzip stream is damaged ({error})"
            return
        if not inflater.eof:
            self.truncated = "the gzip stream ends early"
