"""The table of allocations and frees: the `[memory]` events of recordings with profile_memory=True.

The profiler writes one event per allocation or free, with the total memory of the allocator after the call (torch
c10/core/Allocator.cpp, reportMemoryUsageToProfiler). The totals of CUDA and HIP devices include the memory that was
allocated before the recording. The totals of the CPU start at 0 with the first memory recording of the process, so only
differences of CPU totals are used.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from tb_bottleneck.sources.scan.results import Key, Scanned
from tb_bottleneck.trace.columns.labels import event_of, id_text
from tb_bottleneck.trace.columns.number_columns import times, whole_numbers
from tb_bottleneck.trace.table import Bools, Ints, Table, column

CPU_DEVICE_TYPE = 0  # c10/core/DeviceType.h: 0 CPU, 1 CUDA, 6 HIP, 12 XPU
# The columns of this many events take 1.6 GB. A step has about a thousand memory events, so this is more than a
# recording of ten thousand steps.
MAX_MEMORY_EVENTS = 20_000_000


_SCANNED = ("time", "thread", "address", "size", "allocated", "reserved", "device_type", "device")
"""Names of the columns, in the order in which the native scanner returns them."""

Caller = tuple[str, str]
"""Process id and thread id, as texts, of a thread that allocates."""


@dataclass(frozen=True, eq=False)
class MemoryEvents(Table):
    """Allocations and frees, sorted by time; rows with equal times are in the order of the file."""

    time: Ints = column("ns", "time of the call, on the recording's own clock")
    thread: Ints = column("row of threads", "the calling thread")
    address: Ints = column("id", "address of the block; 0 if not recorded (torch before 1.10)")
    size: Ints = column("bytes", "bytes allocated; negative for a free. Devices round up to 512 bytes")
    allocated: Ints = column("bytes", "allocated in total after the call; 0 if not recorded")
    reserved: Ints = column("bytes", "reserved from the driver after the call; 0 on the CPU")
    device_type: Ints = column("id", "c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP")
    device: Ints = column("id", "index of the device; -1 for the CPU")

    def on(self, device_type: int, device: int) -> "MemoryEvents":
        """Returns the rows of the device with the c10::DeviceType `device_type` and the index `device`."""
        return self.take((self.device_type == device_type) & (self.device == device))

    @property
    def whole_chain(self) -> bool:
        """True if each total is the previous total plus the bytes of the event, which shows that no event is missing.

        Use it only on a table with the rows of a single device.
        """
        return bool((self.allocated[:-1] + self.size[1:] == self.allocated[1:]).all())

    @property
    def with_addresses(self) -> bool:
        """True if each event has an address. Events with addresses also have totals."""
        return bool((self.address != 0).all())


class MemoryEventsBuilder:
    """Builds the table of memory events from batches of events.

    `lost` maps a reason to the number of events that are left out for this reason.
    """

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        self._callers: defaultdict[Caller, int] = defaultdict(count().__next__)
        self._caller_of: dict[Key, int] = {}  # by the scanner's keys
        self._parts: list[dict[str, Ints]] = []
        self._rows = 0

    def add(self, events: Sequence[Any]) -> None:
        """Adds `[memory]` events. Each event must have arguments."""
        if events:
            self._add(*self._columns(events))

    def add_scanned(self, scanned: Scanned) -> None:
        """Adds the memory events that the native scanner read."""
        columns = dict(zip(_SCANNED, (np.frombuffer(data, np.int64) for data in scanned.memory), strict=True))
        if len(columns["time"]):
            callers = [self._scanned_caller(key) for key in scanned.callers]
            columns["thread"] = np.array(callers, np.int64)[columns["thread"]]
            self._add(columns, columns["size"] != 0)

    def build(self, thread: Callable[[object, object], int]) -> MemoryEvents:
        """Returns the table of all batches, sorted by time.

        `thread` is a function that returns the row of a thread in the table of threads, from its process and thread id.
        """
        if not self._parts:
            return MemoryEvents.empty()
        threads = np.array([thread(*caller) for caller in self._callers], np.int64)
        whole = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        self._parts.clear()
        whole["thread"] = threads[whole["thread"]]
        order = np.argsort(whole["time"], kind="stable")
        return MemoryEvents(**{name: values[order] for name, values in whole.items()})

    def _add(self, columns: dict[str, Ints], good: Bools) -> None:
        good[max(MAX_MEMORY_EVENTS - self._rows, 0) :] = False
        self.lost += Counter({"memory events": int(np.count_nonzero(~good))})
        self._parts.append({name: values[good] for name, values in columns.items()})
        self._rows += len(good)

    def _scanned_caller(self, key: Key) -> int:
        if key not in self._caller_of:
            event = event_of(key)
            self._caller_of[key] = self._callers[id_text(event.pid), id_text(event.tid)]
        return self._caller_of[key]

    def _columns(self, events: Sequence[Any]) -> tuple[dict[str, Ints], Bools]:
        """Returns the columns of `events`, and a mask of `events`: True if the time and the size are usable."""
        time, good = times([event.ts for event in events])
        all_args = [event.args for event in events]
        pairs = [(event.pid, event.tid) for event in events]
        # A batch has few threads.
        caller_of = {pair: self._callers[id_text(pair[0]), id_text(pair[1])] for pair in dict.fromkeys(pairs)}
        columns = {
            "time": time,
            "thread": np.array([caller_of[pair] for pair in pairs], np.int64),
            "address": whole_numbers([args.address or 0 for args in all_args]),
            "size": whole_numbers([args.allocated_bytes or 0 for args in all_args]),
            "allocated": whole_numbers([args.total_allocated or 0 for args in all_args]),
            "reserved": whole_numbers([args.total_reserved or 0 for args in all_args]),
            "device_type": whole_numbers([args.memory_device_type or 0 for args in all_args]),
            "device": whole_numbers([args.memory_device or 0 for args in all_args]),
        }
        return columns, good & (columns["size"] != 0)
