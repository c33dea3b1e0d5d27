"""Inflates zstd and lz4 with optional packages.

A file may have several frames in a row. A frame is a complete compressed stream (RFC 8878, lz4 frame format).
Both formats are recognised by their magic number, not by the file name.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from tb_bottleneck.base.errors import Unreadable

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
LZ4_MAGIC = b"\x04\x22\x4d\x18"

# zstandard inflates all bytes that one call passes. 4 bytes can become 128 KiB (RFC 8878 §3.1.1.2), so a piece of this
# many bytes can become 16 MiB.
_ZSTD_PIECE = 512
# A frame that needs more bytes of memory than this is refused. The value is zstd's own limit for files from the net.
_ZSTD_WINDOW = 1 << 27


class Frames:
    """Inflates one zstd or lz4 file. Afterwards, `complete` is True if the file ended at the end of a frame.

    `name` is the name of the format. `start` returns a new decoder for a frame; the decoder raises `error` if the data
    are damaged. Each call of the decoder gets at most `piece` compressed bytes, and returns at most `limit` plain bytes
    (0: no limit)."""

    def __init__(self, name: str, start: Callable[[], Any], error: type[Exception], piece: int, limit: int) -> None:
        self.name = name
        self.complete = False
        self._start = start
        self._error = error
        self._piece = piece
        self._limit = limit

    def inflate(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the plain bytes of the compressed `parts`, in parts of any size. Raises ValueError if the data are
        damaged."""
        inflater = None
        for part in parts:
            for begin in range(0, len(part), self._piece):
                rest: bytes | None = part[begin : begin + self._piece]
                while rest is not None:
                    if inflater is None or inflater.eof:
                        if not rest:
                            break
                        inflater = self._start()
                    try:
                        yield inflater.decompress(rest, self._limit) if self._limit else inflater.decompress(rest)
                    except self._error as error:
                        raise ValueError(str(error)) from error
                    rest = _rest(inflater)
                self.complete = inflater is not None and inflater.eof

    def first(self, data: bytes, count: int) -> bytes:
        """Returns at most `count` plain bytes from `data`, the beginning of a file. Returns fewer bytes if `data` has
        no more, or is damaged."""
        head = b""
        parts = self.inflate([data])
        with suppress(ValueError):
            while len(head) < count and (part := next(parts, None)) is not None:
                head += part
        return head[:count]


def _rest(inflater: Any) -> bytes | None:
    """Returns the bytes to pass to the next call of `decompress`; None if the inflater needs new data from the file."""
    if inflater.eof:
        return bytes(inflater.unused_data or b"")
    return None if getattr(inflater, "needs_input", True) else b""


def frames_of(start: bytes) -> Frames | None:
    """Returns an inflater for a file that begins with the bytes `start`, or None if the file is neither zstd nor lz4.

    Raises Unreadable: the package for the format is not installed."""
    if start.startswith(ZSTD_MAGIC):
        try:
            import zstandard
        except ImportError as error:
            raise _missing("zstd", "zstandard") from error
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        return Frames("zstd", decoder.decompressobj, zstandard.ZstdError, _ZSTD_PIECE, 0)
    if start.startswith(LZ4_MAGIC):
        try:
            from lz4.frame import LZ4FrameDecompressor
        except ImportError as error:
            raise _missing("lz4", "lz4") from error
        return Frames("lz4", LZ4FrameDecompressor, RuntimeError, 1 << 16, 1 << 18)
    return None


def _missing(name: str, package: str) -> Unreadable:
    return Unreadable(
        f"The file is compressed with {name}, and the package {package} is not installed. "
        f'Install it (pip install "tb_bottleneck[compression]"), or compress the file with gzip.'
    )
