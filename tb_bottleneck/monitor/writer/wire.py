"""Writes the binary form of messages and of records in an event file, without protobuf and TensorBoard.

A training may have an older protobuf than the reader needs, or none. The monitor writes only a few kinds of messages,
so it encodes them itself (https://protobuf.dev/programming-guides/encoding). Each function returns one field as bytes,
and a message is the concatenation of its fields. As in proto3, zeros and empty texts are left out, except in a oneof.
"""

import math
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MASK64 = (1 << 64) - 1
_CASTAGNOLI = 0x82F63B78
_MASK_DELTA = 0xA282EAD8


class NotJson(ValueError):
    """Raised for a value that google.protobuf.Struct cannot store, because JSON has no such value."""


def integer(field: int, value: int, in_oneof: bool = False) -> bytes:
    """Returns an int32, int64, bool or enum field with the number `field`; empty for zero, except if `in_oneof` is
    True."""
    return _key(field, _VARINT) + _varint(value & _MASK64) if value or in_oneof else b""


def double(field: int, value: float, in_oneof: bool = False) -> bytes:
    """Returns a double field with the number `field`; empty for zero, except if `in_oneof` is True."""
    return _key(field, _FIXED64) + struct.pack("<d", value) if value or in_oneof else b""


def single(field: int, value: float) -> bytes:
    """Returns a float field (32 bits) with the number `field`, even if the value is zero."""
    return _key(field, _FIXED32) + struct.pack("<f", value)


def text(field: int, value: str, in_oneof: bool = False) -> bytes:
    """Returns a string field with the number `field`; empty for an empty text, except if `in_oneof` is True.

    Characters that UTF-8 cannot encode become question marks."""
    return message(field, value.encode("utf-8", "replace")) if value or in_oneof else b""


def message(field: int, content: bytes) -> bytes:
    """Returns a field with the number `field` that contains `content`, an encoded message or bytes. The field is
    written even if `content` is empty."""
    return _key(field, _BYTES) + _varint(len(content)) + content


def doubles(field: int, values: Iterable[float]) -> bytes:
    """Returns a packed repeated double field with the number `field`; empty without values."""
    packed = struct.pack(f"<{len(flat)}d", *flat) if (flat := array("d", values)) else b""
    return message(field, packed) if packed else b""


def integers(field: int, values: Sequence[int]) -> bytes:
    """Returns a packed repeated int32 or int64 field with the number `field`; empty without values."""
    return message(field, b"".join(_varint(value & _MASK64) for value in values)) if values else b""


def json_struct(facts: Mapping[object, object]) -> bytes:
    """Returns `facts` as the bytes of a serialized google.protobuf.Struct. Raises NotJson for values that JSON does not
    have."""
    entries = []
    for key, value in facts.items():
        if not isinstance(key, str):
            raise NotJson(f"{key!r} is no name")
        entries.append(message(1, _strict(1, key) + message(2, _json_value(value))))
    return b"".join(entries)


def _json_value(value: object) -> bytes:
    match value:
        case None:
            return integer(1, 0, in_oneof=True)
        case bool():
            return integer(4, int(value), in_oneof=True)
        case int() | float():
            return double(2, _finite(value), in_oneof=True)
        case str():
            return _strict(3, value)
        case dict():
            return message(5, json_struct(value))
        case list() | tuple():
            return message(6, b"".join(message(1, _json_value(item)) for item in value))
    raise NotJson(f"{type(value).__name__} is no type of JSON")


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NotJson("JSON has finite numbers only")
    return number


def _strict(field: int, value: str) -> bytes:
    try:
        return message(field, value.encode())
    except UnicodeEncodeError:
        raise NotJson("the text is not valid Unicode") from None


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def record(data: bytes) -> bytes:
    """Returns `data` as a record of an event file: length, checksum of the length, data, checksum of the data
    (TFRecord).

    Source: https://www.tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details"."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def masked_crc32c(data: bytes) -> int:
    """Returns the masked CRC-32C of `data`. TFRecord masks a checksum by rotating its bits and adding a constant."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_CASTAGNOLI if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()
