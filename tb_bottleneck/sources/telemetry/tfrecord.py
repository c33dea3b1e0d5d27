"""Reads the records of an event file: length, checksum, content, checksum (TFRecord format, TensorFlow docs).

TensorBoard's own reader stops at the first damaged record. This reader searches for the next valid record, skips
records that are too large, and continues at the last position when the file has grown.
"""

import os
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tb_bottleneck.base.persistence import open_regular

HEADER, FOOTER = 12, 4  # bytes: length and its checksum; the content's checksum
LARGEST = 32 << 20  # bytes of one record; the monitor's packets are some kilobytes
MAX_WASTED = 64 << 20
"""Bytes of damaged parts after which the rest of a file is ignored. Searching 10 MB takes a good part of a second, and
a sparse file can be larger than the disk. The value is a choice: two records of the largest size."""
_SEARCH_BYTES = 1 << 20  # read at a time while searching for a valid record

# The data of a checksum are divided into lanes of this many bytes. The lanes are computed in parallel.
_LANE = 64
_POLYNOMIAL = 0x82F63B78  # CRC-32C, Castagnoli, bits reversed

_Words = npt.NDArray[np.uint32]


def _table() -> _Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_TABLE = _table()


def _fed(crc: _Words, byte: npt.NDArray[np.uint8]) -> _Words:
    """Returns the CRC registers `crc`, each updated with one byte."""
    fed: _Words = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> np.uint32(8))
    return fed


def _after_a_lane() -> list[list[int]]:
    """Returns the effect of _LANE zero bytes on a CRC register, as four tables: one per byte of the register.

    The four results are combined by XOR, because the effect is linear."""
    tables = []
    for place in range(4):
        crc = (np.arange(256, dtype=np.uint32) << np.uint32(8 * place)).astype(np.uint32)
        for _ in range(_LANE):
            crc = _fed(crc, np.zeros(256, np.uint8))
        tables.append(crc.tolist())
    return tables


_AFTER_A_LANE = _after_a_lane()
_SMALL_TABLE: list[int] = _TABLE.tolist()


def masked_crc32c(data: bytes) -> int:
    """Returns the masked CRC-32C of `data`, as event files contain it."""
    lanes = len(data) // _LANE
    crc = 0xFFFFFFFF
    if lanes:
        columns = np.frombuffer(data, np.uint8, lanes * _LANE).reshape(lanes, _LANE).T.copy()
        registers = np.zeros(lanes, np.uint32)
        for column in columns:
            registers = _fed(registers, column)
        a, b, c, d = _AFTER_A_LANE
        for register in registers.tolist():
            crc = a[crc & 255] ^ b[crc >> 8 & 255] ^ c[crc >> 16 & 255] ^ d[crc >> 24] ^ register
    for byte in data[lanes * _LANE :]:
        crc = _SMALL_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class Records:
    """Reads the records of one file. Each record is returned once. Not thread-safe.

    `offset` is the position in the file, in bytes, at which the next read continues. Records with more than `largest`
    bytes are skipped. `follow_links` is passed to `open_regular`."""

    def __init__(self, path: str, largest: int = LARGEST, follow_links: bool = True) -> None:
        self.path = path
        self._follow_links = follow_links
        self.offset = 0
        self.dropped: Counter[str] = Counter()
        """Unusable records by reason: damaged | too_large."""
        self.wasted = 0
        """Bytes of damaged parts, and of records whose contents could not be used."""
        self._largest = largest
        self._searching = False

    def read(self, at_most: int = 64 << 20) -> Iterator[bytes]:
        """Yields the records appended since the last call, up to about `at_most` bytes.

        Each yielded value is the content of a record and the checksum of the content. The checksum is not checked: call
        `is_valid`.

        Raises:
            OSError: the file cannot be read.
        """
        with open_regular(self.path, self._follow_links) as file:
            size = os.fstat(file.fileno()).st_size
            stop = min(self.offset + at_most, size)
            while self.offset < stop:
                if self.wasted > MAX_WASTED:
                    self.offset = size
                    return
                file.seek(self.offset)
                header = file.read(HEADER)
                if len(header) < HEADER:
                    return
                if masked_crc32c(header[:8]) != int.from_bytes(header[8:], "little"):
                    self.dropped["damaged"] += 0 if self._searching else 1
                    if not self._search(file):
                        return
                    continue
                self._searching = False
                length = int.from_bytes(header[:8], "little")
                whole = HEADER + length + FOOTER
                if self.offset + whole > size:
                    return  # not completely written yet
                if length > self._largest:
                    self.dropped["too_large"] += 1
                    self.offset += whole
                    continue
                body = file.read(length + FOOTER)
                self.offset += whole
                if len(body) == length + FOOTER:
                    yield body

    def is_valid(self, body: bytes) -> bool:
        """Returns True if the checksum at the end of `body`, a record from `read`, is right. Counts wrong checksums in
        `dropped`."""
        valid = masked_crc32c(body[:-FOOTER]) == int.from_bytes(body[-FOOTER:], "little")
        if not valid:
            self.dropped["damaged"] += 1
            self.wasted += len(body)
        return valid

    def _search(self, file: BinaryIO) -> bool:
        """Searches the next _SEARCH_BYTES bytes for a header with a valid checksum. Moves `offset` to this header, or
        past these bytes if they have no such header.

        Returns False at the end of the file."""
        self._searching = True
        file.seek(self.offset + 1)
        block = file.read(_SEARCH_BYTES)
        headers = np.flatnonzero(_headers(block))
        # Without such a header, the last bytes may still be the start of an incomplete header.
        skipped = 1 + (int(headers[0]) if len(headers) else max(len(block) - HEADER + 1, 0))
        self.offset += skipped
        self.wasted += skipped
        return len(block) >= HEADER


def _headers(block: bytes) -> npt.NDArray[np.bool_]:
    """Returns a mask of the positions in `block`: True if a header with a valid checksum starts there."""
    places = len(block) - HEADER + 1
    if places <= 0:
        return np.zeros(0, np.bool_)
    data = np.frombuffer(block, np.uint8)
    crc = np.full(places, 0xFFFFFFFF, np.uint32)
    for at in range(8):
        crc = _fed(crc, data[at : at + places])
    crc ^= np.uint32(0xFFFFFFFF)
    masked = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    stated = np.zeros(places, np.uint32)
    for at in range(4):
        stated |= data[8 + at : 8 + at + places].astype(np.uint32) << np.uint32(8 * at)
    return np.asarray(masked == stated)
