"""Reads a Kineto trace (Trace Event Format JSON, gzipped or not) as batches of events, in bounded memory.

It reads the object form `{..., "traceEvents": [...], ...}` and the legacy list form. Each block is cut behind its last
whole event and decoded at once by a typed decoder that skips what is not used; a block that the decoder refuses is
taken again event by event by a lenient one. What cannot be saved is counted in `lost`, never silently dropped.
Left out: top-level keys are kept as they are for the header's reader, which picks the few that are safe to use.
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

# Beyond this many microseconds (101 days) float64 no longer tells the nanoseconds apart: its spacing is 2^-9 us.
EXACT_FLOAT_US = 2.0**43

# One event of so many is asked how its time is written; asking all took 4 % of reading.
_TOLD_BY = 16

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LIST_FORM = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + FIRST_KEYS.encode() + rb")")
_END_AFTER_EVENT = re.compile(rb"\}\s*\]\s*\}?\s*\Z")
# The last boundary of a block is looked for in this much of its end first.
_END_OF_BLOCK = 1 << 12
# What is searched for again with the next block, because it may lie across both: a boundary with its white space.
_OVERLAP = 1 << 10

# How much of what follows a broken stretch is looked at for another event.
_LOOKED_AHEAD = 1 << 16

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
        self._skipping = False
        self._ended = False

    def batches(self) -> Iterator[Batch]:
        """Lists of events in file order. Raises NotFound, Unreadable, NotATrace, TooLarge, StillGrowing."""
        count = 0
        for batch in self._batches():
            count += len(batch)
            if count > self._bounds.events:
                raise TooLarge(
                    f"The file holds more than {self._bounds.events / 1e6:.3g} million events, the most that is read; "
                    "record fewer steps, or turn with_stack off."
                )
            if batch:
                yield batch
        if self._blocks.truncated or not self._ended:
            self._blocks.refuse_growing()
            self.truncated = self._blocks.truncated or "the list of events has no end"

    @property
    def header(self) -> dict[str, Any]:
        """The top-level keys beside the events. Hostile and private: pick, never show."""
        for text in (self._head + b"]" + self._tail, self._head + b"]}"):
            plain = text.decode("utf-8", "replace").lstrip("\ufeff").strip()
            try:
                found = DECODER.decode(plain)
            except (ValueError, RecursionError):
                found = repaired(plain)
            if found is not None:
                return found if isinstance(found, dict) else {}
        return {}

    def _batches(self) -> Iterator[Batch]:
        blocks = self._told()
        for block in chain([self._find_events(blocks)], blocks):
            if self._ended:
                self._keep_tail(block)
            else:
                yield self._events_with(block)
        if not self._ended:
            yield self._last_events()

    def _told(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._tell_progress()
            yield block
        self._tell_progress()  # the end of a zipped file gives no block

    def _tell_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._blocks.bytes_read, self._blocks.bytes_total)

    def _find_events(self, blocks: Iterator[bytes]) -> bytes:
        """Keeps what is before the events, and returns what follows of the block in which they begin."""
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
            raise NotATrace("The file is empty; the profiler was stopped or killed before it wrote.")
        raise NotATrace('No list of "traceEvents" was found; a trace written by torch.profiler has one.')

    def _events_with(self, block: bytes) -> Batch:
        """The events up to the last boundary that this block brings; what follows it waits for the next block."""
        data, searched = block, 0
        boundary = None if self._skipping else _last_boundary(block, 0)
        if boundary is None:
            searched = max(len(self._pending) - _OVERLAP, 0)
            data, self._pending = self._pending + block, b""
            if self._skipping:
                return self._resumed(data)
            boundary = _last_boundary(data, searched)
        if boundary is not None:
            text = b"".join((b"[", self._pending, memoryview(data)[: boundary.start() + 1], b"]"))
            self._pending = data[boundary.end() :]
            return self._events_of(text)
        self._pending = data
        return self._events_of_large() if len(data) > self._bounds.event else []

    def _events_of(self, text: bytes) -> Batch:
        """The events of a JSON list, by the typed decoder where it takes them. What is left over goes on waiting."""
        try:
            if self._exact:
                return _exact(text)
            events = _plain(text)
            self._exact = _too_fine_for_floats(events)
            return _exact(text) if self._exact else events
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
            return self._mended(text[1:-1], b",")

    def _mended(self, text: bytes, separator: bytes) -> Batch:
        plain, following = _text(text), _text(self._pending[:_LOOKED_AHEAD])
        taken = self._lenient.read(plain, following)
        if taken.ended or taken.rest < len(plain):
            self._pending = _bytes(plain[taken.rest :]) + separator + self._pending
        if taken.ended:
            self._ended = True
            self._keep_tail(self._pending)
            self._pending = b""
        return taken.events

    def _events_of_large(self) -> Batch:
        """What waits is larger than an event may be: the end of the list and a large tail, or an event to skip."""
        text, self._pending = self._pending, b""
        events = self._mended(text, b"")
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
    """Whatever the bytes are, as text that gives them back."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _may_be_json(head: bytes) -> bool:
    """Whether the first bytes begin an object, or are too few yet: a byte order mark and white space may precede it."""
    start = head[:_OVERLAP].removeprefix(_BYTE_ORDER_MARK).lstrip()
    return start.startswith(b"{") or (len(head) < _OVERLAP and _BYTE_ORDER_MARK.startswith(start))


def _last_boundary(data: bytes, begin: int) -> re.Match[bytes] | None:
    """The last place between two events behind `begin`."""
    for start in (max(len(data) - _END_OF_BLOCK, begin), begin):
        if boundaries := list(_BOUNDARY.finditer(data, start)):
            return boundaries[-1]
    return None


def _too_fine_for_floats(events: list[Event]) -> bool:
    """Whether a time is written with a fraction that float64 rounds: absolute Unix times may be.

    A recording has one clock, so of many events some tell.
    """
    some = events[::_TOLD_BY] if len(events) > _TOLD_BY**2 else events
    times = [event.ts for event in some if type(event.ts) is float]
    return bool(times) and max(times) >= EXACT_FLOAT_US
