"""The table of everything that took time, and how it is built from a reader's batches."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from tb_bottleneck.sources.event import Event, ExactEvent
from tb_bottleneck.trace.arguments import Signature, Signatures, argument_columns, signature_rows
from tb_bottleneck.trace.kinds import kind_of
from tb_bottleneck.trace.numbers import narrow, times
from tb_bottleneck.trace.table import Bools, Ints, Rows, Table, column
from tb_bottleneck.units import NS_PER_US

# A name longer than this is kept by its beginning: names are shown to people, and a trace may hold one of megabytes.
MAX_NAME = 2_000
# Longer than any recording; Kineto writes such durations on overflow (so does HolisticTraceAnalysis judge them).
MAX_DURATION_US = 7 * 24 * 3600 * 1e6
# Rows of a trace are a few thousand threads and streams; a file with more names than this is hostile.
MAX_THREAD_NAMES = 1_000_000


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
    bytes: Ints = column("bytes", "size of a copy, a fill or a collective's message, else 0")
    blocks: Ints = column("count", "thread blocks of a kernel's grid; 0 where not recorded")
    multiprocessors: Ints = column("count", "of the device, as a kernel's own arguments tell it; 0 where they do not")
    signature: Ints = column(
        "row of signatures", "interned shapes, types and values of an operator's inputs; 0 for none"
    )

    @cached_property
    def end(self) -> Ints:
        """start + duration, in ns."""
        end = self.start + self.duration
        end.flags.writeable = False
        return end


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
        self._signatures = Signatures()
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
        order = _order(**columns)
        for name in self._parts:
            values = columns[name] if name in columns else self._joined(name)
            columns[name] = values[order].astype(np.int64, copy=False)
        return Events(**columns)

    def names(self) -> tuple[str, ...]:
        """The interned names; hostile text."""
        return tuple(self._names)

    def signatures(self) -> tuple[Signature, ...]:
        """The interned signatures as JSON text: shapes, types, values."""
        return tuple(self._signatures.kept)

    def threads(self) -> tuple[Thread, ...]:
        """The interned threads."""
        return tuple(Thread(*key, self._thread_names.get(key, "")) for key in self._threads)

    def _joined(self, name: str) -> Ints:
        parts, self._parts[name] = self._parts[name], []
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _add_others(self, batch: Sequence[Any]) -> None:
        for event in batch:
            if event.ph == "M" and event.name == "thread_name" and getattr(event, "args", None) is not None:
                if len(self._thread_names) < MAX_THREAD_NAMES:
                    self._thread_names[_id_text(event.pid), _id_text(event.tid)] = _clean(event.args.name)
                else:
                    self.lost["thread names"] += 1
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
        kind: Any = np.array([kinds[event.cat] for event in events], np.int8)
        columns = {
            "start": start,
            "duration": np.maximum(duration, 0),
            "kind": kind,
            "name": np.array([names[event.name] for event in events], np.int64),
            "thread": np.array([threads[event.pid, event.tid] for event in events], np.int64),
            "signature": signature_rows(self._signatures, events, kind),
            **argument_columns(events, kind),
        }
        if self._signatures.lost:
            self.lost["shapes"] = self._signatures.lost
        keep = good & measured & ~overlong
        return columns if keep.all() else {name: values[keep] for name, values in columns.items()}

    def _count(self, reason: str, bad: Bools) -> None:
        if number := int(np.count_nonzero(bad)):
            self.lost[reason] += number


def _id_text(value: object) -> str:
    """A process or thread id as text; the same for 7, 7.0 and "7"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else _clean(value)


def _clean(name: object) -> str:
    """A name that can be encoded: lone surrogates, which JSON can spell, are replaced."""
    return str(name)[:MAX_NAME].encode("utf-8", "replace").decode("utf-8") if name is not None else ""


def _order(start: Ints, duration: Ints) -> Rows:
    """Rows by start, then the longest first, then file order: the few that start together are sorted once more."""
    order = np.argsort(start, kind="stable")
    begins = start[order]
    twins = begins[1:] == begins[:-1]
    tied = np.flatnonzero(np.append(twins, False) | np.append(False, twins))
    rows = order[tied]
    order[tied] = rows[np.lexsort((-duration[rows], start[rows]))]
    return order
