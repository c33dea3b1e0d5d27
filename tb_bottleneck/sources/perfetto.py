"""Reads native traces of Perfetto (.pftrace), which torch 2.15 writes, as batches of events.

The compiled part of this package decodes the packets, the records of such a file (native/perfetto.h). Perfetto calls a
named time interval a slice. The start and the end of a slice of the host may lie far apart in the file. Therefore the
times and the arguments of all events are in memory before the first batch is returned.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotATrace, TooLarge
from tb_bottleneck.base.machine import usable_cores

if TYPE_CHECKING:
    from tb_bottleneck.native import Categories
    from tb_bottleneck.native.scanner import Result
    from tb_bottleneck.sources.scan.results import Scanned

MAX_BYTES = 2 << 30
"""Bytes of packets. The events of a larger trace do not fit into the memory of a worker. As JSON, a trace of this size
would have about 6 GB."""

MAX_TEXT = 16 << 30
"""Bytes of names and arguments of all events. The value is the limit of a JSON file (blocks.py). A small file of
packets can exceed this limit, because many events can refer to the same long string."""

BATCH_EVENTS, FEW_BATCHES = 5_000, 4
"""Events that are scanned at once, about as many as in 1 MB of JSON; and the number of such batches up to which no
threads are started."""

TEXT_BYTES = 1 << 24
"""A batch ends earlier if its names and arguments reach about this many bytes."""

_PACKET = 0x0A
"""The first byte of each packet: field 1 of the message Trace, with a length."""

_KNOWN = {(8, 0), (10, 0), (13, 0), (58, 0), *((number, 2) for number in (11, 12, 33, 59, 60))}
"""Fields of packets that distinguish a trace of Perfetto from other files of protobuf messages. Each field is a pair of
its number and its wire type."""

_SEARCHED_PACKETS, _SEARCHED_FIELDS = 8, 64
_MEMORY = "The trace has more events or longer names than fit into memory. Record fewer steps."


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
    """Returns pairs (number, wire type) of the fields of the protobuf message `packet`, which may be cut off. Returns
    None if `packet` is not a message."""
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
    """Returns the variable-length number that begins at the index `at`, and the index after it. Missing bytes count as
    zero bits."""
    value = 0
    for number, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, at + number + 1
    return value, at + 10


@dataclass(frozen=True)
class PerfettoTrace:
    """A trace whose events are in memory.

    `head` has the top-level keys as JSON, up to the beginning of the list of events. `is_whole` is True if the last
    packet of the file is complete."""

    head: bytes
    is_whole: bool
    _events: int
    _exact: bool
    _packets: object

    def batches(self, categories: Callable[[], "Categories"], lost: Counter[str]) -> Iterator["Scanned"]:
        """Yields the events in batches. `categories` returns the event categories that are known so far, as
        `native.scanner.scan` needs them. Unreadable events are counted in `lost`.

        Raises TooLarge if the events have more than MAX_TEXT bytes of text, or if the memory is not sufficient.
        """
        from tb_bottleneck.sources.scan.results import with_decoded, with_readable

        written = 0
        try:
            for size, result in self._scanned(categories):
                written += size
                if written > MAX_TEXT:
                    raise TooLarge(f"The trace has more than {MAX_TEXT >> 30} GiB of text. Record fewer steps.")
                yield with_decoded(result, self._exact) or with_readable(result, self._exact, lost)
        except MemoryError:
            raise TooLarge(_MEMORY) from None

    def _scanned(self, categories: Callable[[], "Categories"]) -> Iterator[tuple[int, "Result"]]:
        """Yields pairs: the size of the text of some events in bytes, and the native scanner's result for these events.
        The events of a batch with more than about TEXT_BYTES of text are divided among several calls of the scanner."""
        from tb_bottleneck.native.scanner import perfetto_scan
        from tb_bottleneck.sources.scan.ahead import calls_ahead

        def scan(first: int, end: int, known: "Categories") -> tuple[int, int, "Result"]:
            return perfetto_scan(self._packets, first, end, TEXT_BYTES, known)

        parts = [(first, first + BATCH_EVENTS) for first in range(0, self._events, BATCH_EVENTS)]
        threads = max(usable_cores() - 1, 1) if len(parts) > FEW_BATCHES else 0
        results = calls_ahead((partial(scan, *part, categories()) for part in parts), threads)
        for (_, end), (following, size, result) in zip(parts, results, strict=True):
            yield size, result
            while following < min(end, self._events):
                following, size, result = scan(following, end, categories())
                yield size, result


def read_perfetto(blocks: Iterator[bytes], told: Callable[[], None]) -> PerfettoTrace:
    """Reads all blocks of a file for which `is_perfetto` returns True. `told` is called after each block.

    Raises:
        NotATrace: the native scanner is not available, or the trace has no slices of a program.
        TooLarge: the packets exceed a limit or the memory."""
    # Imported here and not with the module: a server imports the module to find traces, but only its workers read them.
    from tb_bottleneck.native import VARIABLE, native_scan
    from tb_bottleneck.sources.scan.ahead import blocks_ahead

    if native_scan() is None:
        raise NotATrace(
            "A native trace of Perfetto is read by the compiled part of this package, which is switched off "
            f"({VARIABLE}=pure) or was not built for lack of a C compiler. Install the package from a wheel, or let "
            "the profiler write JSON: *.pt.trace.json."
        )
    from tb_bottleneck.native.scanner import perfetto_begin, perfetto_end, perfetto_read

    size = 0
    try:
        packets = perfetto_begin()
        for block in blocks_ahead(blocks):
            size += len(block)
            if size > MAX_BYTES:
                raise TooLarge(f"The trace has more than {MAX_BYTES >> 30} GiB of packets. Record fewer steps.")
            perfetto_read(packets, block)
            told()
        head, events, is_whole, has_slices, exact = perfetto_end(packets)
    except MemoryError:
        raise TooLarge(_MEMORY) from None
    if not has_slices:
        raise NotATrace(
            "The file is a trace of Perfetto without slices of a program: a system trace of Linux or Android, for "
            "example. This package reads those that torch.profiler writes (torch 2.15: "
            'export_chrome_trace("trace.pftrace")).'
        )
    return PerfettoTrace(head, is_whole, events, exact, packets)
