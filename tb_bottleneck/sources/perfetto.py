"""Converts native traces of Perfetto (.pftrace), which torch 2.15 writes, to the JSON text of a Kineto trace.

The compiled part decodes the packets (native/perfetto.h), and the reader of JSON reads the resulting text. The start
and the end of a host's slice may lie far apart in the file, so all packets are kept in memory, undecoded.
"""

from collections.abc import Iterator
from itertools import chain

from tb_bottleneck.base.errors import NotATrace, TooLarge

MAX_BYTES = 2 << 30
"""The packets of a larger trace do not fit into the memory of a worker. As JSON, they would have about 6 GB."""

MAX_TEXT = 16 << 30
"""The limit of a JSON file (blocks.py). A short file of packets can name one long string in each event."""

TEXT_BYTES = 1 << 18
"""Approximate size of each part of the text in bytes: the size of a block (blocks.py)."""

_PACKET = 0x0A
"""The first byte of each packet: field 1 of the message Trace, with a length."""

_KNOWN = {(8, 0), (10, 0), (13, 0), (58, 0), *((number, 2) for number in (11, 12, 33, 59, 60))}
"""Fields of packets that tell a trace of Perfetto from other files of protobuf messages: number and wire type."""

_SEARCHED_PACKETS, _SEARCHED_FIELDS = 8, 64
_SLICE = b'{"ph":"X"'


def is_perfetto(head: bytes) -> bool:
    """Returns True if `head`, the first bytes of a file, begins with packets of a Perfetto trace."""
    at = 0
    for _ in range(_SEARCHED_PACKETS):
        if at >= len(head) or head[at] != _PACKET:
            return False
        length, begin = _varint(head, at + 1)
        fields = _fields(head[begin : begin + length])
        if fields is None:
            return False
        if _KNOWN & fields:
            return True
        at = begin + length
    return False


def _fields(packet: bytes) -> set[tuple[int, int]] | None:
    """Returns (number, wire type) of the fields of `packet`, which may be cut off; None if it is not a message."""
    found: set[tuple[int, int]] = set()
    at = 0
    while at < len(packet) and len(found) < _SEARCHED_FIELDS:
        key, at = _varint(packet, at)
        kind = key & 7
        if key >> 3 == 0 or kind not in (0, 1, 2, 5):
            return None
        found.add((key >> 3, kind))
        size, at = _varint(packet, at) if kind in (0, 2) else (8 if kind == 1 else 4, at)
        at += 0 if kind == 0 else size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns the number that begins at `at`, and the position after it; missing bytes count as zero bits."""
    value = 0
    for number, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, at + number + 1
    return value, at + 10


def as_json(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the blocks of a file unchanged, or as JSON text if the file is a trace of Perfetto.

    Raises:
        NotATrace: the native scanner is not available, or the trace has no slices of a program.
        TooLarge: the packets, or the JSON text, exceed a limit or the memory.
    """
    first = next(blocks, b"")
    if not is_perfetto(first):
        yield from chain([first] if first else [], blocks)
        return
    # Not where this module is imported: a server looks for traces, and worker processes read them.
    import msgspec

    from tb_bottleneck.sources.scan.results import VARIABLE, native_scan
    from tb_bottleneck.sources.trace_event import Args

    if native_scan() is None:
        raise NotATrace(
            "A native trace of Perfetto is read by the compiled part of this package, which is switched off "
            f"({VARIABLE}=pure) or was not built for lack of a C compiler. Install the package from a wheel, or let "
            "the profiler write JSON: *.pt.trace.json."
        )
    from tb_bottleneck.native.scanner import perfetto, perfetto_text

    parts, size = [first], len(first)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > MAX_BYTES:
            raise TooLarge(f"The trace has more than {MAX_BYTES >> 30} GiB of packets. Record fewer steps.")
    packets = b"".join(parts)
    parts.clear()
    written, has_slices = 0, False
    try:
        trace = perfetto(packets, tuple(field.encode_name.encode() for field in msgspec.structs.fields(Args)))
        del packets
        while text := perfetto_text(trace, TEXT_BYTES):
            has_slices = has_slices or _SLICE in text
            yield text
            written += len(text)
            if written > MAX_TEXT:
                raise TooLarge(f"The trace has more than {MAX_TEXT >> 30} GiB as JSON. Record fewer steps.")
    except MemoryError:
        raise TooLarge("The trace has more events or longer names than fit into memory. Record fewer steps.") from None
    if not has_slices:
        raise NotATrace(
            "The file is a trace of Perfetto without slices of a program: a system trace of Linux or Android, for "
            "example. This package reads those that torch.profiler writes (torch 2.15: "
            'export_chrome_trace("trace.pftrace")).'
        )
