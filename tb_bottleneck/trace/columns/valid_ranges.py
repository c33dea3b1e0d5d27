"""The valid ranges of times and sizes in a trace. Values outside are removed, so that later code cannot overflow.

Each value of a file fits into 64 bits, but sums and differences of malicious values may not. `within_ranges` ensures
that differences of times, sums of durations and sums of sizes are below 2^62. Each function that reads a trace calls
`within_ranges` on the complete tables.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.columns.packed_column import look_up
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import DEVICE_KINDS, Kind
from tb_bottleneck.trace.table import Bools, Ints, Table

# Times are in ns since 1970 or since the start of the machine. 2^62 ns since 1970 is in the year 2116.
MAX_TIME_NS = 2**62
# Largest distance of an event from the event in the middle of the table. No recording takes a week, and a damaged time
# is much farther away.
MAX_DISTANCE_NS = 7 * 24 * 3600 * NS_PER_S
# Largest size of a memory block, a memory total or a copy: more than any machine has.
MAX_BYTES = 2**50
MAX_SUM = 2.0**62

T = TypeVar("T", bound=Table)

FAR_AWAY, TOO_LONG = "time far from the others", "durations too long together"
SHORTEST_ENDLESS_NS = 60 * NS_PER_S
"""Work of a device that takes less is kept, however short the recording is. A choice."""
ENDLESS, TWICE, TIMELESS = "longer than the recording", "recorded twice", "work of a device without a time"


def within_ranges(events: Events, memory: MemoryEvents) -> tuple[Events, MemoryEvents, Counter[str]]:
    """Returns both tables without values outside the ranges, and the number of removed events by reason.

    Events with a time, a duration or a memory size outside the ranges are removed. If the size of a copy is outside the
    range, it becomes 0.
    """
    lost: Counter[str] = Counter()
    if len(events):
        events = _kept(events, _near(events.start, _middle(events.start)), FAR_AWAY, lost)
        events = _kept(events, _summable(events.duration[:]), TOO_LONG, lost)
    for find, reason in ((_timeless, TIMELESS), (_endless, ENDLESS), (_repeated, TWICE)) if len(events) else ():
        events = _kept_work(events, find, reason, lost)
    if len(events) and not (sizes := _summable(events.bytes[:]) & (events.bytes <= MAX_BYTES)).all():
        events = replace(events, bytes=np.where(sizes, events.bytes, 0))
    if len(memory):
        middle = _middle(events.start if len(events) else memory.time)
        memory = _kept(memory, _near(memory.time, middle), FAR_AWAY, lost)
        sizes = np.maximum.reduce([np.abs(getattr(memory, name)) for name in ("size", "allocated", "reserved")])
        memory = _kept(memory, (sizes <= MAX_BYTES) & _summable(np.abs(memory.size)), "memory events", lost)
    return events, memory, lost


def _timeless(rows: Ints, events: Events) -> Ints:
    """Returns those of `rows` whose events take no time and begin before all events of the host."""
    host = np.ones(len(events), np.bool_)
    host[rows] = False
    first = int(events.start[np.argmax(host)])
    return np.asarray(rows[(events.duration[rows] == 0) & (events.start[rows] < first)], np.int64)


def _endless(rows: Ints, events: Events) -> Ints:
    """Returns those of `rows` whose events last longer than twice the time from the first event to the last one."""
    longest = 2 * int(events.start[-1] - events.start[0]) + SHORTEST_ENDLESS_NS
    return rows[events.duration[rows] > longest]


def _repeated(rows: Ints, events: Events) -> Ints:
    """Returns those of `rows` whose call, name, thread and times are those of an earlier row."""
    starts = events.start[rows]
    equal = np.append(False, starts[1:] == starts[:-1])[: len(rows)]
    rows = rows[equal | np.append(equal[1:], False)[: len(rows)]]  # usually few
    columns = (events.start, events.duration, events.name, events.thread, events.correlation)
    keys = np.stack([np.asarray(column[rows], np.int64) for column in columns], axis=1)
    _, first = np.unique(keys, axis=0, return_index=True)
    return np.delete(rows, first)


def _kept_work(events: Events, find: Callable[[Ints, Events], Ints], reason: str, lost: Counter[str]) -> Events:
    """Returns `events` without those that `find` finds among the work of devices."""
    on_device = np.zeros(len(Kind), np.bool_)
    on_device[list(DEVICE_KINDS)] = True
    removed = find(np.flatnonzero(look_up(on_device, events.kind)), events)
    if not len(removed):
        return events
    mask = np.ones(len(events), np.bool_)
    mask[removed] = False
    return _kept(events, mask, reason, lost)


def _middle(sorted_times: Ints) -> int:
    return int(sorted_times[len(sorted_times) // 2])


def _near(times: Ints, middle: int) -> Bools:
    """Returns a mask of the times within MAX_DISTANCE_NS of `middle`; all False if `middle` exceeds MAX_TIME_NS."""
    if abs(middle) > MAX_TIME_NS:
        return np.zeros(len(times), np.bool_)
    return np.asarray((times >= middle - MAX_DISTANCE_NS) & (times <= middle + MAX_DISTANCE_NS), np.bool_)


def _summable(values: Ints) -> Bools:
    """Returns a mask of `values`. The largest values are False, so that the sum of the others is at most MAX_SUM."""
    if values.sum(dtype=np.float64) <= MAX_SUM:
        return np.ones(len(values), np.bool_)
    order = np.argsort(values, kind="stable")
    mask = np.zeros(len(values), np.bool_)
    mask[order] = np.cumsum(values[order], dtype=np.float64) <= MAX_SUM
    return mask


def _kept(table: T, mask: Bools, reason: str, lost: Counter[str]) -> T:
    """Returns the rows of `table` for which `mask` is True, and adds the number of other rows to `lost[reason]`."""
    if mask.all():
        return table
    lost[reason] += int(np.count_nonzero(~mask))
    return table.take(mask)
