"""Reads a Kineto trace (Trace Event Format JSON, gzipped or not) as batches of events, in bounded memory.

Reads the object form `{..., "traceEvents": [...], ...}` and the legacy list form. Each block is cut after its last
complete event and decoded by a typed decoder that skips unused fields. If the decoder refuses a block, a lenient reader
reads it event by event. Unusable events are counted in `lost`. Top-level keys are not interpreted here: the header
module reads the few that are safe to use.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import msgspec

from tb_bottleneck.errors import NotATrace, TooLarge
from tb_bottleneck.sources.blocks import Blocks
from tb_bottleneck.sources.json_repair import DECODER, repaired
from tb_bottleneck.sources.lenient import FIRST_KEYS, LenientReader
from tb_bottleneck.sources.limits import BOUNDS, Bounds
from tb_bottleneck.sources.trace_event import Event, ExactEvent

Progress = Callable[[int, int], None]
Batch = list[Event] | list[ExactEvent]

# Beyond this many microseconds (101 days) float64 cannot distinguish nanoseconds: its spacing is 2^-9 us.
EXACT_FLOAT_US = 2.0**43

# One event in this many is checked for the format of its time; checking all took 4 % of reading.
_CHECK_EVERY = 16

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LIST_FORM = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + FIRST_KEYS.encode() + rb")")
_END_AFTER_EVENT = re.compile(rb"\}\s*\]\s*\}?\s*\Z")
# The last boundary of a block is first searched in this many bytes at its end.
_END_OF_BLOCK = 1 << 12
# Bytes that are searched again with the next block: a boundary with its white space may cross both.
_OVERLAP = 1 << 10

# Text that ends in the middle of an event is read again when it is this many times as long.
_RETRY_GROWTH = 4

# Bytes after a damaged part that are searched for another event.
_LOOKAHEAD = 1 << 16

_plain: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[Event], strict=False).decode
_exact: Callable[[bytes], list[ExactEvent]] = msgspec.json.Decoder(list[ExactEvent], strict=False).decode


class KinetoReader:
    """One pass over one file. Iterate `batches()`; `header`, `lost` and `truncated` are complete afterwards."""

    def __init__(self, path: str, progress: Progress | None = None, bounds: Bounds = BOUNDS) -> None:
        self.lost: Counter[str] = Counter()
        self.truncated = ""
        self._blocks = Blocks(path, bounds)
        self._bounds = bounds
        self._progress = progress
        self._lenient = LenientReader(self.lost)
        self._exact = False
        self._head = b""
        self._tail = b""
        self._pending = b""
        self._retry_from = 0
        self._skipping = False
        self._ended = False

    def batches(self) -> Iterator[Batch]:
        """Yields lists of events in file order. Raises NotFound, Unreadable, NotATrace, TooLarge, StillGrowing."""
        count = 0
        for batch in self._batches():
            count += len(batch)
            if count > self._bounds.events:
                raise TooLarge(
                    f"The file has more than {self._bounds.events / 1e6:.3g} million events, which is the limit. "
                    "Record fewer steps, or turn with_stack off."
                )
            if self.lost["malformed"] > max(self._bounds.malformed, count):
                raise NotATrace("Most events of the file cannot be read. It is damaged, or it is no trace of torch.")
            if batch:
                yield batch
        if self._blocks.truncated or not self._ended:
            self._blocks.refuse_growing()
            self.truncated = self._blocks.truncated or "the list of events has no end"

    @property
    def header(self) -> dict[str, Any]:
        """The top-level keys next to the events. Untrusted and private: select from them, never show them."""
        for text in (self._head + b"]" + self._tail, self._head + b"]}"):
            plain = text.decode("utf-8", "replace").lstrip("\ufeff").strip()
            try:
                keys = DECODER.decode(plain)
            except (ValueError, RecursionError):
                keys = repaired(plain)
            if keys is not None:
                return keys if isinstance(keys, dict) else {}
        return {}

    def _batches(self) -> Iterator[Batch]:
        blocks = self._blocks_with_progress()
        for block in chain([self._find_events(blocks)], blocks):
            if self._ended:
                self._keep_tail(block)
            else:
                yield self._events_with(block)
        if not self._ended:
            yield self._last_events()

    def _blocks_with_progress(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._report_progress()
            yield block
        self._report_progress()  # the end of a compressed file yields no block

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._blocks.bytes_read, self._blocks.bytes_total)

    def _find_events(self, blocks: Iterator[bytes]) -> bytes:
        """Stores the text before the events, and returns the rest of the block in which they start."""
        head = b""
        for block in blocks:
            searched = max(len(head) - _OVERLAP, 0)
            head += block
            if match := _LIST_FORM.match(head) or _EVENTS_KEY.search(head, searched):
                self._head = head[: match.end()]
                return head[match.end() :]
            if len(head) > self._bounds.header or not _may_be_json(head):
                break
        else:
            self._blocks.refuse_growing()
        if not head.strip():
            raise NotATrace("The file is empty: the profiler was stopped or killed before it wrote.")
        raise NotATrace('No list "traceEvents" was found. A trace written by torch.profiler has one.')

    def _events_with(self, block: bytes) -> Batch:
        """Returns the events up to the last boundary in this block; the rest is pending until the next block."""
        data, searched = block, 0
        waits = len(self._pending) + len(block) < self._retry_from
        boundary = None if self._skipping or waits else _last_boundary(block, 0)
        if boundary is None:
            searched = max(len(self._pending) - _OVERLAP, 0)
            data, self._pending = self._pending + block, b""
            if self._skipping:
                return self._resumed(data)
            boundary = None if waits else _last_boundary(data, searched)
        if boundary is not None:
            text = b"".join((b"[", self._pending, memoryview(data)[: boundary.start() + 1], b"]"))
            self._pending = data[boundary.end() :]
            events = self._events_of(text)
            # An unclosed list with objects like events: reading it again with each block would take quadratic time.
            self._retry_from = _RETRY_GROWTH * len(self._pending) if len(self._pending) > len(block) else 0
            return events
        self._pending = data
        return self._events_of_large() if len(data) > self._bounds.event else []

    def _events_of(self, text: bytes) -> Batch:
        """Decodes a JSON list of events, with the typed decoder if it accepts it. The rest stays pending."""
        try:
            if self._exact:
                return _exact(text)
            events = _plain(text)
            self._exact = _too_fine_for_floats(events)
            return _exact(text) if self._exact else events
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
            return self._lenient_events(text[1:-1], b",")

    def _lenient_events(self, text: bytes, separator: bytes) -> Batch:
        plain, following = _text(text), _text(self._pending[:_LOOKAHEAD])
        taken = self._lenient.read(plain, following)
        if taken.ended or taken.rest < len(plain):
            self._pending = _bytes(plain[taken.rest :]) + separator + self._pending
        if taken.ended:
            self._ended = True
            self._keep_tail(self._pending)
            self._pending = b""
        return taken.events

    def _events_of_large(self) -> Batch:
        """Reads pending text larger than an event may be: the end of the list and a large tail, or an event to skip."""
        text, self._pending, self._retry_from = self._pending, b"", 0
        events = self._lenient_events(text, b"")
        if len(self._pending) > self._bounds.event:
            self.lost["too large"] += 1
            self._skipping = True
            self._pending = self._pending[-_OVERLAP:]
        return events

    def _resumed(self, data: bytes) -> Batch:
        boundary = _BOUNDARY.search(data)
        if boundary is None:
            self._pending = data[-_OVERLAP:]
            return []
        self._skipping = False
        return self._events_with(data[boundary.end() :])

    def _last_events(self) -> Batch:
        if self._skipping:
            self._ended = bool(_END_AFTER_EVENT.search(self._pending))
            return []
        plain = _text(self._pending)
        taken = self._lenient.read_last(plain)
        self._ended = taken.ended
        self._keep_tail(_bytes(plain[taken.rest :]))
        return taken.events

    def _keep_tail(self, block: bytes) -> None:
        if len(self._tail) <= self._bounds.header:
            self._tail += block


def _text(data: bytes) -> str:
    """Decodes any bytes to text that `_bytes` converts back."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _may_be_json(head: bytes) -> bool:
    """Returns True if the first bytes can start an object, after an optional byte order mark and white space."""
    start = head[:_OVERLAP].removeprefix(_BYTE_ORDER_MARK).lstrip()
    return start.startswith(b"{") or (len(head) < _OVERLAP and _BYTE_ORDER_MARK.startswith(start))


def _last_boundary(data: bytes, begin: int) -> re.Match[bytes] | None:
    """Returns the last boundary between two events after `begin`."""
    for start in (max(len(data) - _END_OF_BLOCK, begin), begin):
        if boundaries := list(_BOUNDARY.finditer(data, start)):
            return boundaries[-1]
    return None


def _too_fine_for_floats(events: list[Event]) -> bool:
    """Returns True if float64 rounds the fraction of a time, which happens with absolute Unix times.

    A recording has one clock, so a sample of the events is enough.
    """
    sample = events[::_CHECK_EVERY] if len(events) > _CHECK_EVERY**2 else events
    times = [event.ts for event in sample if type(event.ts) is float]
    return bool(times) and max(times) >= EXACT_FLOAT_US
