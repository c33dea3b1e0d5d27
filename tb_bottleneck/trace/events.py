"""The table of a trace's events, and the builder that makes this table from batches of events in a file."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.native import Categories
from tb_bottleneck.sources.kineto import Batch
from tb_bottleneck.sources.scan.results import Scanned
from tb_bottleneck.sources.trace_event import MEMORY_EVENT
from tb_bottleneck.trace.columns.counters import Counters, CountersBuilder
from tb_bottleneck.trace.columns.event_args import Signature, Signatures, argument_columns, operator_columns
from tb_bottleneck.trace.columns.graph_dependencies import Flows, FlowsBuilder
from tb_bottleneck.trace.columns.labels import Labels, Thread, clean, id_text, kinds_of
from tb_bottleneck.trace.columns.memory_events import MemoryEvents, MemoryEventsBuilder
from tb_bottleneck.trace.columns.messages import Message, Messages, message_rows
from tb_bottleneck.trace.columns.number_columns import narrow, times
from tb_bottleneck.trace.columns.packed_column import SumColumn, packed
from tb_bottleneck.trace.columns.scanned_events import ScannedColumns
from tb_bottleneck.trace.kinds import DEVICE_KINDS
from tb_bottleneck.trace.table import Bools, Ints, Rows, Table, column

# Longer than any recording. Kineto writes longer durations if a number overflows. HolisticTraceAnalysis ignores them,
# too.
MAX_DURATION_US = 7 * 24 * 3600 * 1e6
# A trace has a few thousand threads and streams; a file with more names than this is malicious.
MAX_THREAD_NAMES = 1_000_000
# Number of rows that are concatenated and converted to smaller integers at once.
PART = 1 << 16


@dataclass(frozen=True, eq=False)
class Events(Table):
    """The complete events of a trace (phase "X"), sorted by start, then longest first, then in file order."""

    start: Ints = column("ns", "start, on the recording's own clock")
    duration: Ints = column("ns", "time taken; never negative")
    kind: Ints = column("Kind", "kind of the event")
    name: Ints = column("row of names", "interned name")
    thread: Ints = column("row of threads", "interned (pid, tid); for device work the stream's row")
    correlation: Ints = column("id", "links a runtime call to its device work; 0 if not linked")
    device: Ints = column("id", "device of device work, else 0")
    stream: Ints = column("id", "stream of device work, else 0")
    bytes: Ints = column("bytes", "size of a copy, a fill or a collective's message, else 0")
    blocks: Ints = column("count", "thread blocks of a kernel's grid; 0 if not recorded")
    multiprocessors: Ints = column("count", "of the device, derived from a kernel's arguments; 0 if unknown")
    occupancy: Ints = column("percent", "estimated occupancy of a kernel, plus one; 0 if not recorded")
    sequence: Ints = column(
        "id", "autograd's number of an operator: a backward operator has that of its forward operator"
    )
    signature: Ints = column(
        "row of signatures", "interned shapes, types and values of the inputs of an operator or annotation; 0 for none"
    )
    message: Ints = column("row of messages", "interned arguments of a collective or a message; 0 for none")

    @property
    def end(self) -> Ints:
        """The column `start + duration`, in ns. An element is computed when it is read."""
        return cast("Ints", SumColumn(self.start, self.duration))


class EventsBuilder:
    """Builds the event table, and the tables of other events, from batches of events.

    `lost` maps a reason to the number of events that are left out for this reason.
    """

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        self._labels = Labels()
        self._signatures = Signatures()
        self._messages = Messages()
        self._thread_names: dict[tuple[str, str], str] = {}
        self._scanned = ScannedColumns(self._labels, self._signatures)
        self._memory = MemoryEventsBuilder()
        self._counters = CountersBuilder()
        self._flows = FlowsBuilder(self._labels.thread)
        self._parts: defaultdict[str, list[Any]] = defaultdict(list)
        self._fresh: defaultdict[str, list[Ints]] = defaultdict(list)  # parts that are not concatenated yet
        self._fresh_rows = 0

    def add(self, batch: Batch) -> None:
        """Adds the events in `batch`: complete events, memory events, counters, thread names and dependencies."""
        if isinstance(batch, Scanned):
            self._memory.add_scanned(batch)
            self._add_columns(self._scanned_columns(batch))
            return
        whole = [event for event in batch if event.ph == "X"]
        if len(whole) < len(batch):
            self._add_others([event for event in batch if event.ph != "X"])
        if whole:
            columns, keep = self._columns(whole)
            self._add_columns(columns if keep.all() else {name: values[keep] for name, values in columns.items()})

    @property
    def categories(self) -> Callable[[], Categories]:
        """A function that returns the known categories of events, and for each the arguments that the scanner reads."""
        return self._scanned.categories

    def _add_columns(self, columns: dict[str, Ints]) -> None:
        for name, values in columns.items():
            self._fresh[name].append(values)
        self._fresh_rows += len(columns["start"])
        if self._fresh_rows > PART:
            self._join_fresh()

    def build(self) -> Events:
        """Returns the event table of all batches. Call it only once, because it frees the columns of the builder."""
        self._join_fresh()
        duration = self._joined("duration")
        order, start = _order(self._joined("start"), duration)
        columns = {"start": start.astype(np.int64, copy=False), "duration": packed(duration[order])}
        del duration
        columns |= {name: packed(values[order]) for name, values in self._labels.columns(self._joined("label")).items()}
        for name in (item.name for item in fields(Events) if item.name not in columns):
            columns[name] = packed(self._joined(name)[order])
        return Events(**columns)

    def names(self) -> tuple[str, ...]:
        """Returns the interned names, in order of their rows. The names are untrusted text."""
        return self._labels.names()

    def signatures(self) -> tuple[Signature, ...]:
        """Returns the interned signatures, in order of their rows: (shapes, types, values), each as JSON text."""
        return tuple(self._signatures.row_of)

    def messages(self) -> tuple[Message, ...]:
        """Returns the distinct arguments of collectives and point-to-point messages. The column `message` of the events
        has indices into this tuple. The values are untrusted."""
        return tuple(self._messages)

    def threads(self) -> tuple[Thread, ...]:
        """Returns the distinct threads. The column `thread` of the events has indices into this tuple."""
        return self._labels.threads(self._thread_names)

    def counters(self) -> tuple[Counters, tuple[str, ...]]:
        """Returns the samples of the hardware counters of all devices, and the names of the counters.

        Call this method only once: each call adds the number of lost samples to `lost`.
        """
        self.lost += self._counters.lost
        return self._counters.build(), self._counters.names()

    def memory(self) -> MemoryEvents:
        """Returns the table of allocations and frees. Call it only once: each call adds the lost events to `lost`."""
        memory = self._memory.build(self._labels.thread)
        self.lost += self._memory.lost
        return memory

    def flows(self) -> Flows:
        """Returns the recorded dependencies between device operations.

        Call this method only once: each call adds the number of lost dependencies to `lost`.
        """
        self.lost += self._flows.lost
        return self._flows.build()

    def _join_fresh(self) -> None:
        """Concatenates the recent batches of each column, narrows the result, and adds it to `_parts`. The batches are
        joined before narrow(), because one call takes about as long for hundreds of rows as for thousands."""
        for name, parts in self._fresh.items():
            self._parts[name].append(narrow(np.concatenate(parts)))
        self._fresh.clear()
        self._fresh_rows = 0

    def _joined(self, name: str) -> Any:
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _add_others(self, batch: Sequence[Any]) -> None:
        self._memory.add([event for event in batch if event.name == MEMORY_EVENT and event.args is not None])
        self._counters.add([event for event in batch if event.ph == "C"])
        self._flows.add(batch)
        for event in batch:
            if event.ph == "M" and event.name == "thread_name" and getattr(event, "args", None) is not None:
                if len(self._thread_names) < MAX_THREAD_NAMES:
                    self._thread_names[id_text(event.pid), id_text(event.tid)] = clean(event.args.name)
                else:
                    self.lost["thread names"] += 1
            elif not event.ph:
                self.lost["no phase"] += 1

    def _scanned_columns(self, scanned: Scanned) -> dict[str, Ints]:
        columns = self._scanned.of(scanned)
        columns["message"] = np.zeros(len(columns["start"]), np.int64)
        if not scanned.decoded:
            return columns
        self._add_others([event for event in scanned.decoded if event.ph != "X"])
        pairs = zip(scanned.rows, scanned.decoded, strict=True)
        whole = [(row, event) for row, event in pairs if event.ph == "X"]
        keep = np.ones(len(columns["start"]), np.bool_)
        keep[scanned.rows] = False
        if whole:
            rows = [row for row, _ in whole]
            decoded, keep[rows] = self._columns([event for _, event in whole])
            for name, values in decoded.items():
                columns[name] = columns[name].copy()
                columns[name][rows] = values
        return {name: values[keep] for name, values in columns.items()}

    def _columns(self, events: Sequence[Any]) -> tuple[dict[str, Ints], Bools]:
        """Returns the columns of complete events, and a mask of the events with a usable start and duration."""
        start, good = times([event.ts for event in events])
        duration, measured = times([event.dur for event in events])
        keep = good & measured & (duration <= MAX_DURATION_US * NS_PER_US)
        sound = bool((keep & (duration >= 0)).all())
        if not sound:
            self._count_odd(good & measured, duration)
        label = self._labels.of(events)
        kind = kinds_of(label)
        if not sound:  # without a duration, the work of a device does not count; the host's events still have a place
            keep &= (duration >= 0) | ~np.isin(kind, list(DEVICE_KINDS))
        columns = {
            "start": start,
            "duration": duration if sound else np.maximum(duration, 0),
            "label": label,
            **operator_columns(self._signatures, events, kind),
            "message": message_rows(self._messages, events, self._labels.have_messages(label)),
            **argument_columns(events, kind),
        }
        if self._signatures.lost:
            self.lost["shapes"] = self._signatures.lost
        if self._messages.lost:
            self.lost["arguments of collectives"] = self._messages.lost
        return columns, keep

    def _count_odd(self, usable: Bools, duration: Ints) -> None:
        overlong = duration > MAX_DURATION_US * NS_PER_US
        counts = {
            "time unusable": ~usable,
            "duration overflow": usable & overlong,
            "negative duration": usable & (duration < 0),
        }
        self.lost += Counter({reason: int(np.count_nonzero(rows)) for reason, rows in counts.items()})


def _order(start: Ints, duration: Ints) -> tuple[Rows, Ints]:
    """Returns two arrays: the rows sorted by start, then longest first, then in file order; and the sorted starts.

    Rows are first sorted by start. Then only rows with equal starts are sorted again, by duration.
    """
    order = np.argsort(start, kind="stable")
    starts = start[order]
    equals_next = starts[1:] == starts[:-1]
    tied = np.flatnonzero(np.append(equals_next, False) | np.append(False, equals_next))
    rows = order[tied]
    order[tied] = rows[np.lexsort((-duration[rows].astype(np.int64), starts[tied]))]
    return order, starts
