"""Reads a Kineto trace (Trace Event Format JSON, or native Perfetto; compressed or not) as batches of events.

Reads the object form `{..., "traceEvents": [...], ...}` and the legacy list form. Each block is cut after its last
complete event and decoded by a typed decoder that skips unused fields. If the decoder refuses a block, a lenient reader
reads the block event by event. Unusable events are counted in `lost`. Top-level keys are not interpreted here:
trace/header.py reads those that are safe to use.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import msgspec

from tb_bottleneck.base.errors import NotATrace, TooLarge
from tb_bottleneck.native import Categories, native_scan
from tb_bottleneck.sources.blocks import (
    BOUNDARY,
    BOUNDS,
    END_AFTER_EVENT,
    EVENTS_KEY,
    LIST_FORM,
    OVERLAP,
    Blocks,
    Bounds,
    last_boundary,
    may_be_json,
)
from tb_bottleneck.sources.json_repair import DECODER, METADATA_DECODER, repaired
from tb_bottleneck.sources.lenient import LenientReader
from tb_bottleneck.sources.other_programs import what_it_is
from tb_bottleneck.sources.perfetto import is_perfetto, read_perfetto
from tb_bottleneck.sources.scan.ahead import ScanAhead
from tb_bottleneck.sources.scan.results import Scanned
from tb_bottleneck.sources.trace_event import EXACT_FLOAT_US, Event, ExactEvent, decode_events, decode_exact_events

Progress = Callable[[int, int], None]
Batch = list[Event] | list[ExactEvent] | Scanned

# One event in this many is checked for the format of its time. Checking all events took 4 % of the time of reading.
_CHECK_EVERY = 16

# Text that ends in the middle of an event is read again when it is this many times as long.
_RETRY_GROWTH = 4
# Bytes after a damaged part that are searched for another event.
_LOOKAHEAD = 1 << 16


class KinetoReader:
    """Reads one trace file in one pass. Iterate over `batches()` once.

    After the iteration, `header` has the top-level keys, `lost` has the number of lost events by reason, and
    `truncated` describes why the end of the file is missing; `truncated` is empty for a complete file."""

    def __init__(
        self,
        path: str,
        progress: Progress | None = None,
        bounds: Bounds = BOUNDS,
        categories: Callable[[], Categories] | None = None,
    ) -> None:
        """`progress` is called with the bytes read so far and the bytes in total. `categories` returns the argument of
        this name for `native.scanner.scan`. If `categories` is given, the native scanner is used where it is
        installed."""
        self.lost: Counter[str] = Counter()
        self.truncated = ""
        self._blocks = Blocks(path, bounds)
        self._bounds = bounds
        self._progress = progress
        self._lenient = LenientReader(self.lost)
        self._categories = categories
        self.exact = False
        self._head = b""
        self._tail = b""
        self.pending = b""
        self._retry_from = 0
        self._skipping = False
        self.ended = False

    def batches(self) -> Iterator[Batch]:
        """Yields events in file order. Raises NotFound, Unreadable, Inaccessible, NotATrace, TooLarge, StillGrowing."""
        count = 0
        for batch in self._batches():
            count += batch.events if isinstance(batch, Scanned) else len(batch)
            if count > self._bounds.events:
                raise TooLarge(
                    f"The file has more than {self._bounds.events / 1e6:.3g} million events, which is the limit. "
                    "Record fewer steps, or turn with_stack off."
                )
            if self.lost["malformed"] > max(self._bounds.malformed, count):
                raise NotATrace("Most events of the file cannot be read. It is damaged, or it is no trace of torch.")
            if batch:
                yield batch
        if self._blocks.truncated or not self.ended:
            self._blocks.refuse_growing()
            self.truncated = self._blocks.truncated or "the list of events has no end"

    @property
    def header(self) -> dict[str, Any]:
        """The top-level keys next to the events; empty if unreadable. The values are untrusted and may be private."""
        for text in (self._head + b"]" + self._tail, self._head + b"]}"):
            plain = text.decode("utf-8", "replace").lstrip("\ufeff").strip()
            try:
                keys = METADATA_DECODER.decode(plain)
            except (ValueError, RecursionError):
                keys = repaired(plain, METADATA_DECODER)
            if keys is not None:
                return keys if isinstance(keys, dict) else {}
        return {}

    def _batches(self) -> Iterator[Batch]:
        blocks = iter(self._blocks)
        first = next(blocks, b"")
        blocks = chain([first] if first else [], blocks)
        if is_perfetto(first):
            yield from self._perfetto_batches(blocks)
            return
        whole = chain([self._find_events(blocks)], blocks)
        scan = native_scan() if self._categories is not None else None
        ahead = whole if scan is None or self._categories is None else ScanAhead(self, whole, scan, self._categories)
        for block in ahead:
            self._report_progress()
            if isinstance(block, Scanned):
                yield block
            elif self.ended:
                self._keep_tail(block)
            else:
                yield self._events_with(block)
        self._report_progress()  # the end of a compressed file yields no block
        if not self.ended:
            yield self._last_events()

    def _perfetto_batches(self, blocks: Iterator[bytes]) -> Iterator[Batch]:
        trace = read_perfetto(blocks, self._report_progress)
        self._head, self.ended = trace.head, trace.is_whole
        yield from trace.batches(self._categories or (lambda: ()), self.lost)
        self._report_progress()

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._blocks.bytes_read, self._blocks.bytes_total)

    def _find_events(self, blocks: Iterator[bytes]) -> bytes:
        """Stores the text before the list of events. Returns the rest of the block in which the list starts.

        Raises NotATrace if there is no such list, and StillGrowing if the list may still be written."""
        head = b""
        for block in blocks:
            self._report_progress()
            searched = max(len(head) - OVERLAP, 0)
            head += block
            if match := LIST_FORM.match(head) or EVENTS_KEY.search(head, searched):
                self._head = head[: match.end()]
                return head[match.end() :]
            if len(head) > self._bounds.header or not may_be_json(head):
                break
        else:
            if not _is_complete(head):
                self._blocks.refuse_growing()
        if not head.strip():
            raise NotATrace("The file is empty: the profiler was stopped or killed before it wrote.")
        raise NotATrace(what_it_is(self._blocks.path, head))

    def _events_with(self, block: bytes) -> Batch:
        """Returns the events that end in `block`, up to the last boundary between two events. The rest of the block is
        kept in `pending` until the next block."""
        waits = self._waits(block)
        if text := self.cut(block):
            return self._events_before(text, block)
        searched = max(len(self.pending) - OVERLAP, 0)
        data, self.pending = self.pending + block, b""
        if self._skipping:
            return self._resumed(data)
        if not waits and (text := self._cut(data, searched)):
            return self._events_before(text, block)
        self.pending = data
        return self._events_of_large() if len(data) > self._bounds.event else []

    def cut(self, block: bytes) -> bytes | None:
        """Returns the kept text (`pending`) and `block`, up to the last boundary between two events in `block`, as a
        JSON list. Keeps the rest of `block` in `pending`. Returns None if `block` has no boundary, if the kept text
        must become longer, or while an event that is too large is skipped."""
        return None if self._skipping or self._waits(block) else self._cut(block, 0)

    def _waits(self, block: bytes) -> bool:
        """Returns True if the kept text (`pending`) must become longer before it is decoded again."""
        return len(self.pending) + len(block) < self._retry_from

    def _cut(self, data: bytes, searched: int) -> bytes | None:
        boundary = last_boundary(data, searched)
        if boundary is None:
            return None
        text = b"".join((b"[", self.pending, memoryview(data)[: boundary.start() + 1], b"]"))
        self.pending = data[boundary.end() :]
        self._retry_from = 0
        return text

    def _events_before(self, text: bytes, block: bytes) -> Batch:
        events = self._events_of(text)
        # The kept text can be an unclosed list of objects that look like events. Reading this text again with each
        # block would take quadratic time.
        self._retry_from = _RETRY_GROWTH * len(self.pending) if len(self.pending) > len(block) else 0
        return events

    def _events_of(self, text: bytes) -> Batch:
        """Decodes a JSON list of events, with the lenient reader if the typed decoder refuses the list."""
        try:
            if self.exact:
                return decode_exact_events(text)
            events = decode_events(text)
            self.exact = _too_fine_for_floats(events)
            return decode_exact_events(text) if self.exact else events
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
            return self._lenient_events(text[1:-1], b",")

    def _lenient_events(self, text: bytes, separator: bytes) -> Batch:
        plain, following = _text(text), _text(self.pending[:_LOOKAHEAD])
        taken = self._lenient.read(plain, following)
        if taken.ended or taken.rest < len(plain):
            self.pending = _bytes(plain[taken.rest :]) + separator + self.pending
        if taken.ended:
            self.ended = True
            self._keep_tail(self.pending)
            self.pending = b""
        return taken.events

    def _events_of_large(self) -> Batch:
        """Decodes kept text that is larger than an event may be. This text is either the end of the list of events with
        a large text after it, or an event that is too large and is skipped."""
        text, self.pending, self._retry_from = self.pending, b"", 0
        events = self._lenient_events(text, b"")
        if len(self.pending) > self._bounds.event:
            self.lost["too large"] += 1
            self._skipping = True
            self.pending = self.pending[-OVERLAP:]
        return events

    def _resumed(self, data: bytes) -> Batch:
        boundary = BOUNDARY.search(data)
        if boundary is None:
            self.pending = data[-OVERLAP:]
            return []
        self._skipping = False
        return self._events_with(data[boundary.end() :])

    def _last_events(self) -> Batch:
        if self._skipping:
            self.ended = bool(END_AFTER_EVENT.search(self.pending))
            return []
        plain = _text(self.pending)
        taken = self._lenient.read_last(plain)
        self.ended = taken.ended
        self._keep_tail(_bytes(plain[taken.rest :]))
        return taken.events

    def _keep_tail(self, block: bytes) -> None:
        if len(self._tail) <= self._bounds.header:
            self._tail += block


def _is_complete(head: bytes) -> bool:
    """Returns True if `head` is a complete JSON value, so that nothing can follow."""
    try:
        DECODER.decode(head.decode("utf-8", "replace").lstrip("\ufeff").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _text(data: bytes) -> str:
    """Decodes any bytes to text. `_bytes` restores the bytes from the text."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _too_fine_for_floats(events: list[Event]) -> bool:
    """Returns True if float64 rounds the fraction of a time, which happens with absolute Unix times.

    A recording has one clock, so all times have the same format, and a sample of the events is enough.
    """
    sample = events[::_CHECK_EVERY] if len(events) > _CHECK_EVERY**2 else events
    times = [event.ts for event in sample if type(event.ts) is float]
    return bool(times) and max(times) >= EXACT_FLOAT_US
