"""The table of everything that took time, and how it is built from a reader's batches."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np

from tb_bottleneck.sources.event import Event, ExactEvent
from tb_bottleneck.trace.kinds import kind_of
from tb_bottleneck.trace.table import Floats, Ints, Table, column

# A name longer than this is kept by its beginning: names are shown to people, and a trace may hold one of megabytes.
MAX_NAME = 2_000
# Longer than any recording; Kineto writes such durations on overflow (so does HolisticTraceAnalysis judge them).
MAX_DURATION_US = 7 * 24 * 3600 * 1e6
# Times beyond this do not fit into int64 nanoseconds.
MAX_TIME_US = 9.2e15


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


class EventsBuilder:
    """Takes batches, gives the table. `lost` counts what could not be used, by the reason."""

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        self._names: defaultdict[str, int] = defaultdict(count().__next__)
        self._threads: defaultdict[tuple[str, str], int] = defaultdict(count().__next__)
        self._thread_names: dict[tuple[str, str], str] = {}
        self._kinds: dict[str, int] = {}
        self._parts: list[dict[str, Ints]] = []

    def add(self, batch: Sequence[Event] | Sequence[ExactEvent]) -> None:
        """Takes the complete events of a batch and the names of threads; leaves flows, instants and counters out."""
        whole = [event for event in batch if event.ph == "X"]
        if len(whole) < len(batch):
            for event in batch:
                if event.ph == "M" and event.name == "thread_name" and event.args is not None:
                    self._thread_names[_key(event)] = _clean(event.args.name)
        if whole:
            self._parts.append(self._columns(whole))

    def build(self) -> Events:
        """The table of all batches."""
        columns = {
            item.name: np.concatenate([part[item.name] for part in self._parts] or [np.empty(0, np.int64)])
            for item in fields(Events)
        }
        order = np.lexsort((-columns["duration"], columns["start"]))
        return Events(**{name: values[order] for name, values in columns.items()})

    def names(self) -> tuple[str, ...]:
        """The interned names; hostile text."""
        return tuple(self._names)

    def threads(self) -> tuple[Thread, ...]:
        """The interned threads."""
        return tuple(Thread(*key, self._thread_names.get(key, "")) for key in self._threads)

    def _columns(self, events: Sequence[Any]) -> dict[str, Ints]:
        start, good = self._times([event.ts for event in events])
        duration, measured = self._times([event.dur for event in events])
        overlong = measured & (duration > MAX_DURATION_US * 1000)
        self._count("time missing", ~(good & measured))
        self._count("duration overflow", overlong)
        self._count("negative duration", good & measured & (duration < 0))
        args = [event.args for event in events]
        columns = {
            "start": start,
            "duration": np.maximum(duration, 0),
            "kind": np.array([self._kind(event.cat) for event in events], np.int64),
            "name": np.array([self._names[_clean(event.name)] for event in events], np.int64),
            "thread": np.array([self._threads[_key(event)] for event in events], np.int64),
            "correlation": _whole([a and a.correlation for a in args]),
            "external": _whole([a and (a.external_id if a.external_id is not None else a.external_id_old) for a in args]),
            "device": _whole([a and a.device for a in args]),
            "stream": _whole([a and a.stream for a in args]),
            "bytes": _whole([a and a.bytes for a in args]),
            "blocks": np.array([_blocks(a.grid) if a and a.grid else 0 for a in args], np.int64),
        }
        keep = good & measured & ~overlong
        return columns if keep.all() else {name: values[keep] for name, values in columns.items()}

    def _times(self, values: list[Any]) -> tuple[Ints, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Microseconds to nanoseconds, and which of them are usable."""
        if any(isinstance(value, Decimal) for value in values):
            values = [value if isinstance(value, Decimal) and value.is_finite() else None for value in values]
            good = np.array([value is not None and abs(value) < MAX_TIME_US for value in values])
            pairs = zip(values, good, strict=True)
            return np.array([int(value * 1000) if fine else 0 for value, fine in pairs], np.int64), good
        us = _floats(values)
        good = np.isfinite(us) & (np.abs(us) < MAX_TIME_US)
        us = np.where(good, us, 0.0)
        # Split before scaling: microseconds since 1970 times 1000 are beyond float64's whole numbers.
        whole = np.floor(us)
        return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64), good

    def _kind(self, category: str | None) -> int:
        word = category or ""
        if word not in self._kinds:
            self._kinds[word] = int(kind_of(word))
        return self._kinds[word]

    def _count(self, reason: str, bad: Iterable[bool]) -> None:
        number = int(np.count_nonzero(np.asarray(bad)))
        if number:
            self.lost[reason] += number


def _key(event: Any) -> tuple[str, str]:
    return str(event.pid), str(event.tid)


def _clean(name: object) -> str:
    """A name that can be encoded: lone surrogates, which JSON can spell, are replaced."""
    return str(name)[:MAX_NAME].encode("utf-8", "replace").decode("utf-8") if name is not None else ""


def _blocks(grid: object) -> int:
    if not isinstance(grid, list):
        return 0
    product = 1
    for size in grid:
        # Some ROCm versions write [0, 0, 0] for a grid they do not know.
        product *= max(int(size), 0)
    return min(product, 2**62)


def _floats(values: list[Any]) -> Floats:
    """Numbers, or text of numbers, as float64; NaN where there is none."""
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_float(value) for value in values], np.float64)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _whole(values: list[Any]) -> Ints:
    """Ids and sizes as int64; 0 where there is none."""
    numbers = _floats(values)
    usable = np.isfinite(numbers) & (np.abs(numbers) < 2**62)
    return np.where(usable, numbers, 0).astype(np.int64)
