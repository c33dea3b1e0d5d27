"""Reads a Kineto trace (Trace Event Format JSON, gzipped or not) as batches of events, in bounded memory.

It reads the object form `{..., "traceEvents": [...], ...}` and the legacy list form. Each block is cut behind its last
whole event and decoded at once by a typed decoder that skips what is not used; a block that the decoder refuses is taken
again event by event by a lenient one. What cannot be saved is counted in `lost`, never silently dropped.
Left out: top-level keys are kept as they are for the header's reader, which picks the few that are safe to use.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import msgspec

from tb_bottleneck.errors import NotATrace, TooLarge
from tb_bottleneck.sources.blocks import Blocks
from tb_bottleneck.sources.event import Event, ExactEvent
from tb_bottleneck.sources.repair import repaired
from tb_bottleneck.units import COARSE_FLOAT_US

Progress = Callable[[int, int], None]
Batch = list[Event] | list[ExactEvent]

# A head or tail of a few thousand processes and devices is a few megabytes; more is not a header.
MAX_HEADER_BYTES = 16 << 20
# One event holds a name and arguments; 16 MiB is a thousand times the largest seen.
MAX_EVENT_BYTES = 16 << 20
# 4 GB of columns at about 100 bytes an event.
MAX_EVENTS = 40_000_000

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST_FORM = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_FIRST_KEYS = r'"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*:'
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + _FIRST_KEYS.encode() + rb")")
_BOUNDARY_TEXT = re.compile(r"\}\s*,?\s*(?=\{\s*" + _FIRST_KEYS + ")")
_SEPARATORS = re.compile(r"[\s,]*")
_TAIL_OF_BLOCK = 1 << 16


class KinetoReader:
    """One pass over one file. Iterate `batches()`; `header`, `lost` and `truncated` are complete afterwards."""

    def __init__(self, path: str, progress: Progress | None = None) -> None:
        self.lost: Counter[str] = Counter()
        self.truncated = ""
        self._blocks = Blocks(path)
        self._progress = progress
        self._head = b""
        self._tail = b""
        self._events = 0
        self._lenient = json.JSONDecoder(strict=False)
        self._decode: Callable[[bytes], Batch] | None = None
        self._shape: type[Event] | type[ExactEvent] = Event

    def batches(self) -> Iterator[Batch]:
        """Lists of events in file order. Raises NotFound, Unreadable, NotATrace, TooLarge."""
        blocks = iter(self._blocks)
        buffer, ended = b"", False
        for block in chain([self._find_events(blocks)], blocks):
            self._report_progress()
            if ended:
                self._keep_tail(block)
                continue
            buffer += block
            cut = self._cut(buffer)
            if cut:
                events, rest, ended = self._events_of(buffer[:cut])
                buffer = rest + buffer[cut:]
                yield from self._counted(events)
            elif len(buffer) > MAX_EVENT_BYTES:
                raise TooLarge(f"One event is larger than {MAX_EVENT_BYTES >> 20} MiB, the most that is read.")
            if ended:
                self._keep_tail(buffer)
        self._report_progress()
        if not ended:
            events, rest, ended = self._lenient_events(buffer, final=True)
            yield from self._counted(events)
            self._keep_tail(rest)
        self.truncated = self._blocks.truncated or ("" if ended else "the list of events has no end")

    @property
    def header(self) -> dict[str, Any]:
        """The top-level keys beside the events. Hostile and private: pick, never show."""
        for text in (self._head + b"]" + self._tail, self._head + b"]}"):
            try:
                found = self._lenient.decode(text.decode("utf-8", "replace").lstrip("\ufeff").strip())
            except (ValueError, RecursionError):
                continue
            return found if isinstance(found, dict) else {}
        return {}

    def _find_events(self, blocks: Iterator[bytes]) -> bytes:
        head = b""
        for block in blocks:
            self._report_progress()
            head += block
            if match := _LIST_FORM.match(head) or _EVENTS_KEY.search(head):
                self._head, rest = head[: match.end()], head[match.end() :]
                return rest
            if len(head) > MAX_HEADER_BYTES:
                break
        if not head.strip():
            raise NotATrace("The file is empty; the profiler was stopped or killed before it wrote.")
        raise NotATrace('No list of "traceEvents" was found; a trace written by torch.profiler has one.')

    def _cut(self, buffer: bytes) -> int:
        """The place behind the last whole event, 0 where there is none yet."""
        for begin in (max(len(buffer) - _TAIL_OF_BLOCK, 0), 0):
            matches = list(_BOUNDARY.finditer(buffer, begin))
            if matches:
                return matches[-1].end()
        return 0

    def _events_of(self, block: bytes) -> tuple[Batch, bytes, bool]:
        """The events of a block that ends in a separator, what is left of it, and whether the list ended in it."""
        text = block.rstrip().rstrip(b",")
        try:
            if self._decode is None:
                self._choose_shape(text)
            assert self._decode is not None
            return self._decode(b"[" + text + b"]"), b"", False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._lenient_events(block, final=False)

    def _choose_shape(self, text: bytes) -> None:
        """Decimal times only where float64 would round them: absolute Unix times with a fraction."""
        events = msgspec.json.decode(b"[" + text + b"]", type=list[Event], strict=False)
        times = [event.ts for event in events if isinstance(event.ts, float)]
        fraction = any(abs(ts) > COARSE_FLOAT_US and not ts.is_integer() for ts in times)
        self._shape = ExactEvent if fraction else Event
        self._decode = msgspec.json.Decoder(list[self._shape], strict=False).decode  # type: ignore[name-defined]

    def _lenient_events(self, block: bytes, final: bool) -> tuple[Batch, bytes, bool]:
        """Event by event, with mending. Returns events, the rest (the tail once the list has ended), and that."""
        text = block.decode("utf-8", "surrogateescape")
        events: list[Any] = []
        at = 0
        while True:
            at = _SEPARATORS.match(text, at).end()  # type: ignore[union-attr]  # the pattern matches everywhere
            if at >= len(text):
                return events, b"", False
            if text[at] == "]":
                return events, text[at + 1 :].encode("utf-8", "surrogateescape"), True
            found, end = self._one(text, at, final)
            if found is not None:
                events.append(found)
            if end <= at:
                if final:
                    self.lost["cut off"] += 1
                    return events, b"", False
                return events, text[at:].encode("utf-8", "surrogateescape"), False
            at = end

    def _one(self, text: str, at: int, final: bool) -> tuple[Any, int]:
        """The event at `at` and where it ends; (None, at) where the text ends before it does."""
        try:
            raw, end = self._lenient.raw_decode(text, at)
            return self._converted(raw), end
        except (ValueError, RecursionError):
            boundary = _BOUNDARY_TEXT.search(text, at)
            end = boundary.start() + 1 if boundary else text.rfind("}", at) + 1 if final else at
            if end <= at:
                return None, at
            raw_or_none = repaired(text[at:end])
            if raw_or_none is None:
                self.lost["malformed"] += 1
                return None, end
            return self._converted(raw_or_none), end

    def _converted(self, raw: object) -> Any:
        try:
            return msgspec.convert(raw, self._shape, strict=False)
        except (msgspec.ValidationError, RecursionError):
            self.lost["malformed"] += 1
            return None

    def _counted(self, events: Batch) -> Iterator[Batch]:
        self._events += len(events)
        if self._events > MAX_EVENTS:
            raise TooLarge(
                f"The file holds more than {MAX_EVENTS // 1_000_000} million events, the most that is read; "
                "record fewer steps, or turn with_stack off."
            )
        if events:
            yield events

    def _keep_tail(self, block: bytes) -> None:
        if len(self._tail) < MAX_HEADER_BYTES:
            self._tail += block

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._blocks.bytes_read, self._blocks.bytes_total)
