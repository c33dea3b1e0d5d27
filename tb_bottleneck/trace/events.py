"""The table of everything that took time, and how it is built from a reader's batches."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from tb_bottleneck.sources.event import Args, Event, ExactEvent
from tb_bottleneck.trace.kinds import DEVICE_KINDS, Kind, kind_of
from tb_bottleneck.trace.numbers import MAX_ID, narrow, times, whole_number, whole_numbers
from tb_bottleneck.trace.table import Bools, Ints, Table, column
from tb_bottleneck.units import NS_PER_US

# A name longer than this is kept by its beginning: names are shown to people, and a trace may hold one of megabytes.
MAX_NAME = 2_000
# Longer than any recording; Kineto writes such durations on overflow (so does HolisticTraceAnalysis judge them).
MAX_DURATION_US = 7 * 24 * 3600 * 1e6
# Rows of a trace are a few thousand threads and streams; a file with more names than this is hostile.
MAX_THREAD_NAMES = 1_000_000
# Models repeat their shapes: a trace of 500 MB holds under 1 MB of distinct ones.
MAX_SIGNATURE_BYTES = 64 << 20
NO_SIGNATURE = (b"", b"", b"")


@dataclass(frozen=True, eq=False)
class Events(Table):
    """Complete events ("X"), sorted by start, then the longest first, then file order."""

    start: Ints = column("ns", "begin, on the recording's own clock")
    duration: Ints = column("ns", "time taken; never negative")
    kind: Ints = column("Kind", "what the event is")
    name: Ints = column("row of names", "interned name")
    thread: Ints = column("row of threads", "interned (pid, tid); for device work the stream's row")
    correlation: Ints = column("id", "ties a runtime call to its device work; 0 where not linked")
    external: Ints = column("id", "the innermost operator around a call or of device work; 0 where not linked")
    device: Ints = column("id", "device of device work, else 0")
    stream: Ints = column("id", "stream of device work, else 0")
    bytes: Ints = column("bytes", "size of a copy or a fill, else 0")
    blocks: Ints = column("count", "thread blocks of a kernel's grid; 0 where not recorded")
    multiprocessors: Ints = column("count", "of the device, as a kernel's own arguments tell it; 0 where they do not")
    signature: Ints = column(
        "row of signatures", "interned shapes, types and values of an operator's inputs; 0 for none"
    )

    @property
    def end(self) -> Ints:
        """start + duration, in ns."""
        return self.start + self.duration


@dataclass(frozen=True)
class Thread:
    """A row of the trace: a host thread, or a stream of a device."""

    process: str
    thread: str
    name: str


class _Rows(dict[Any, int]):
    """Row numbers of values as they stand in the file; a value seen for the first time is asked for its row."""

    def __init__(self, row_of: Callable[[Any], int]) -> None:
        super().__init__()
        self._row_of = row_of

    def __missing__(self, value: Any) -> int:
        row = self._row_of(value)
        # The key keeps the whole value alive, of which the row may keep but the beginning.
        if not isinstance(value, str) or len(value) <= MAX_NAME:
            self[value] = row
        return row


class EventsBuilder:
    """Takes batches, gives the table. `lost` counts what could not be used, by the reason."""

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        names: defaultdict[str, int] = defaultdict(count().__next__)
        threads: defaultdict[tuple[str, str], int] = defaultdict(count().__next__)
        self._names, self._threads = names, threads
        self._name_rows = _Rows(lambda name: names[_clean(name)])
        self._thread_rows = _Rows(lambda key: threads[_id_text(key[0]), _id_text(key[1])])
        self._signatures: dict[tuple[bytes, bytes, bytes], int] = {NO_SIGNATURE: 0}
        self._signature_bytes = 0
        self._kinds = _Rows(lambda category: int(kind_of(category or "")))
        self._thread_names: dict[tuple[str, str], str] = {}
        self._parts: dict[str, list[Ints]] = {item.name: [] for item in fields(Events)}

    def add(self, batch: Sequence[Event] | Sequence[ExactEvent]) -> None:
        """Takes the complete events of a batch and the names of threads; leaves flows, instants and counters out."""
        whole = [event for event in batch if event.ph == "X"]
        if len(whole) < len(batch):
            self._add_others(batch)
        if whole:
            for name, values in self._columns(whole).items():
                self._parts[name].append(narrow(values))

    def build(self) -> Events:
        """The table of all batches. Empties the builder: a recording's columns are held once, not twice."""
        columns = {name: self._joined(name) for name in ("start", "duration")}
        order = np.lexsort((-columns["duration"], columns["start"]))
        for name in self._parts:
            values = columns[name] if name in columns else self._joined(name)
            columns[name] = values[order].astype(np.int64, copy=False)
        return Events(**columns)

    def names(self) -> tuple[str, ...]:
        """The interned names; hostile text."""
        return tuple(self._names)

    def signatures(self) -> tuple[tuple[bytes, bytes, bytes], ...]:
        """The interned signatures as JSON text: shapes, types, values."""
        return tuple(self._signatures)

    def threads(self) -> tuple[Thread, ...]:
        """The interned threads."""
        return tuple(Thread(*key, self._thread_names.get(key, "")) for key in self._threads)

    def _joined(self, name: str) -> Ints:
        parts, self._parts[name] = self._parts[name], []
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _add_others(self, batch: Sequence[Any]) -> None:
        for event in batch:
            if event.ph == "M" and event.name == "thread_name" and event.args is not None:
                if len(self._thread_names) < MAX_THREAD_NAMES:
                    self._thread_names[_id_text(event.pid), _id_text(event.tid)] = _clean(event.args.name)
            elif not event.ph:
                self.lost["no phase"] += 1

    def _columns(self, events: Sequence[Any]) -> dict[str, Ints]:
        start, good = times([event.ts for event in events])
        duration, measured = times([event.dur for event in events])
        overlong = measured & (duration > MAX_DURATION_US * NS_PER_US)
        self._count("time unusable", ~(good & measured))
        self._count("duration overflow", overlong)
        self._count("negative duration", good & measured & (duration < 0))
        names, threads, kinds = self._name_rows, self._thread_rows, self._kinds
        kind = np.array([kinds[event.cat] for event in events], np.int64)
        columns = {
            "start": start,
            "duration": np.maximum(duration, 0),
            "kind": kind,
            "name": np.array([names[event.name] for event in events], np.int64),
            "thread": np.array([threads[event.pid, event.tid] for event in events], np.int64),
            "signature": self._signature_rows(events, kind),
            **_arguments(events, kind),
        }
        keep = good & measured & ~overlong
        return columns if keep.all() else {name: values[keep] for name, values in columns.items()}

    def _signature_rows(self, events: Sequence[Any], kind: Ints) -> Ints:
        """The signatures of operators. Past MAX_SIGNATURE_BYTES new ones are counted as lost instead of kept."""
        rows = np.zeros(len(events), np.int64)
        for row in np.flatnonzero(kind == Kind.CPU_OP).tolist():
            args = events[row].args
            if args is None:
                continue
            dims = bytes(args.dims) or bytes(args.dims_old)
            if dims:
                rows[row] = self._signature(dims, bytes(args.types), bytes(args.concrete))
        return rows

    def _signature(self, *parts: bytes) -> int:
        key = (parts[0], parts[1], parts[2])
        row = self._signatures.get(key)
        if row is None:
            self._signature_bytes += sum(map(len, parts))
            if self._signature_bytes > MAX_SIGNATURE_BYTES:
                self.lost["shapes"] += 1
                return 0
            row = self._signatures[key] = len(self._signatures)
        return row

    def _count(self, reason: str, bad: Bools) -> None:
        if number := int(np.count_nonzero(bad)):
            self.lost[reason] += number


def _arguments(events: Sequence[Any], kind: Ints) -> dict[str, Ints]:
    """The columns that come from `args`; only the kinds that have a column's argument are asked for it."""
    linked, on_device = np.flatnonzero(np.isin(kind, _LINKED_KINDS)), np.flatnonzero(np.isin(kind, DEVICE_KINDS))
    columns = {name: np.zeros(len(events), np.int64) for name in _ARGUMENTS}
    for rows, wanted in ((linked, _LINK_ARGUMENTS), (on_device, _DEVICE_ARGUMENTS)):
        args = [events[row].args or _NO_ARGS for row in rows.tolist()]
        for name, value_of in wanted.items():
            columns[name][rows] = whole_numbers([value_of(each) or 0 for each in args])
    return columns


def _id_text(value: object) -> str:
    """A process or thread id as text; the same for 7, 7.0 and "7"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else _clean(value)


def _clean(name: object) -> str:
    """A name that can be encoded: lone surrogates, which JSON can spell, are replaced."""
    return str(name)[:MAX_NAME].encode("utf-8", "replace").decode("utf-8") if name is not None else ""


def _external(args: Args) -> Any:
    return args.external_id if args.external_id is not None else args.external_id_old


def _blocks(args: Args) -> int:
    if not isinstance(args.grid, list):
        return 0
    # Some ROCm versions write [0, 0, 0] for a grid they do not know.
    product = 1
    for size in args.grid:
        product *= max(whole_number(size), 0)
    return min(product, MAX_ID - 1) if args.grid else 0


def _multiprocessors(args: Args) -> int:
    """blocks / blocks per SM. Below one block per multiprocessor the ratio is printed with too few digits."""
    ratio = args.blocks_per_sm if isinstance(args.blocks_per_sm, int | float) else 0
    return round(_blocks(args) / ratio) if 1 <= ratio < MAX_ID else 0


_NO_ARGS = Args()
_LINK_ARGUMENTS: dict[str, Callable[[Args], Any]] = {"correlation": attrgetter("correlation"), "external": _external}
_DEVICE_ARGUMENTS: dict[str, Callable[[Args], Any]] = {
    "device": attrgetter("device"),
    "stream": attrgetter("stream"),
    "bytes": attrgetter("bytes"),
    "blocks": _blocks,
    "multiprocessors": _multiprocessors,
}
_ARGUMENTS = (*_LINK_ARGUMENTS, *_DEVICE_ARGUMENTS)
_LINKED_KINDS = (Kind.CPU_OP, Kind.ANNOTATION, Kind.CALL, *DEVICE_KINDS)
