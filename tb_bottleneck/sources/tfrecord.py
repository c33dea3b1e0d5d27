"""Reads the records of an event file one after the other: length, checksum, content, checksum.

TensorBoard's own reader stops for good at the first damaged record. This one looks for the next sound one, refuses
what is too large, and goes on where it stopped when the file has grown. The format is TFRecord's (tensorflow docs).
"""

import os
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

HEADER, FOOTER = 12, 4  # bytes: length and its checksum; the content's checksum
LARGEST = 32 << 20  # bytes of one record; the monitor's packets are some kilobytes
_LOOKED_AT = 1 << 20  # bytes at a time, while a sound record is searched

_LANE = 64  # bytes that each lane of a checksum takes; the lanes run beside one another
_POLYNOMIAL = 0x82F63B78  # CRC-32C, Castagnoli, bits reversed

_Words = npt.NDArray[np.uint32]


def _table() -> _Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_TABLE = _table()


def _fed(crc: _Words, byte: npt.NDArray[np.uint8]) -> _Words:
    """The registers `crc` after one byte each."""
    fed: _Words = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> np.uint32(8))
    return fed


def _after_a_lane() -> list[list[int]]:
    """What _LANE zero bytes make of a register, as one table for each of its four bytes: the map is linear."""
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
    """The checksum as event files write it."""
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
    """The records of one file, each given once. Not for several threads at once."""

    def __init__(self, path: str, largest: int = LARGEST) -> None:
        self.path = path
        self.offset = 0
        self.dropped: Counter[str] = Counter()
        """What could not be given, counted by reason: damaged | too_large."""
        self._largest = largest
        self._searching = False

    def read(self, at_most: int = 64 << 20) -> Iterator[bytes]:
        """What was added since the last time, up to about `at_most` bytes; `is_sound` checks the content.

        Raises:
            OSError: the file cannot be read.
        """
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            stop = min(self.offset + at_most, size)
            while self.offset < stop:
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
                    return  # the rest is not written yet
                if length > self._largest:
                    self.dropped["too_large"] += 1
                    self.offset += whole
                    continue
                body = file.read(length + FOOTER)
                self.offset += whole
                if len(body) == length + FOOTER:
                    yield body

    def is_sound(self, body: bytes) -> bool:
        """Whether the content is what was written; counts it where it is not."""
        sound = masked_crc32c(body[:-FOOTER]) == int.from_bytes(body[-FOOTER:], "little")
        if not sound:
            self.dropped["damaged"] += 1
        return sound

    def _search(self, file: BinaryIO) -> bool:
        """Moves on to the next header whose checksum holds; False where what is there has none."""
        self._searching = True
        file.seek(self.offset + 1)
        block = file.read(_LOOKED_AT)
        found = np.flatnonzero(_headers(block))
        # Without one, the last bytes may still be the beginning of a header that is not whole yet.
        self.offset += 1 + (int(found[0]) if len(found) else max(len(block) - HEADER + 1, 0))
        return len(block) >= HEADER


def _headers(block: bytes) -> npt.NDArray[np.bool_]:
    """For each place of the block, whether a header with a right checksum begins there."""
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
