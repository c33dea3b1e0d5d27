"""The table of allocations and frees: the `[memory]` events of recordings with profile_memory=True.

The profiler writes one event per call of an allocator, with the allocator's totals after the call (torch
c10/core/Allocator.cpp, reportMemoryUsageToProfiler). Totals of CUDA and HIP devices include the memory from before the
recording. Totals of the CPU start with the first memory recording of the process, so only their differences are used.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tb_bottleneck.trace.columns.number_columns import times, whole_numbers
from tb_bottleneck.trace.table import Bools, Ints, Table, column

MEMORY_EVENT = "[memory]"
CPU_DEVICE_TYPE = 0  # c10/core/DeviceType.h: 0 CPU, 1 CUDA, 6 HIP, 12 XPU
# 1.6 GB of columns. A step has about a thousand of them, so this is more than a recording of ten thousand steps.
MAX_MEMORY_EVENTS = 20_000_000


@dataclass(frozen=True, eq=False)
class MemoryEvents(Table):
    """Allocations and frees in the order of the file, which is the order of time."""

    time: Ints = column("ns", "time of the call, on the recording's own clock")
    thread: Ints = column("row of threads", "the calling thread")
    address: Ints = column("id", "address of the block; 0 if not recorded (torch before 1.10)")
    size: Ints = column("bytes", "bytes allocated; negative for a free. Devices round up to 512 bytes")
    allocated: Ints = column("bytes", "allocated in total after the call; 0 if not recorded")
    reserved: Ints = column("bytes", "reserved from the driver after the call; 0 on the CPU")
    device_type: Ints = column("id", "c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP")
    device: Ints = column("id", "index of the device; -1 for the CPU")

    @classmethod
    def empty(cls) -> "MemoryEvents":
        """Returns a table without rows."""
        return cls(*(np.empty(0, np.int64) for _ in fields(cls)))

    def on(self, device_type: int, device: int) -> "MemoryEvents":
        """Returns the rows of one device."""
        return self.take((self.device_type == device_type) & (self.device == device))

    @property
    def whole_chain(self) -> bool:
        """True if each total is the previous total plus the event's bytes: no event of this one device is lost."""
        return bool((self.allocated[:-1] + self.size[1:] == self.allocated[1:]).all())

    @property
    def with_addresses(self) -> bool:
        """True if each event has an address and totals."""
        return bool((self.address != 0).all())


class MemoryEventsBuilder:
    """Builds the table from batches. `lost` counts the events that could not be used, by reason."""

    def __init__(self, thread: Callable[[object, object], int]) -> None:
        self.lost: Counter[str] = Counter()
        self._thread = thread
        self._parts: list[dict[str, Ints]] = []
        self._rows = 0

    def add(self, events: Sequence[Any]) -> None:
        """Adds `[memory]` events that have arguments."""
        if not events:
            return
        if self._rows + len(events) > MAX_MEMORY_EVENTS:
            self.lost["memory events"] += len(events)
            return
        part, good = _columns(events, self._thread)
        self.lost += Counter({"memory events": int(np.count_nonzero(~good))})
        self._parts.append({name: values[good] for name, values in part.items()})
        self._rows += int(np.count_nonzero(good))

    def build(self) -> MemoryEvents:
        """Returns the table of all batches, sorted by time."""
        if not self._parts:
            return MemoryEvents.empty()
        whole = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        self._parts.clear()
        order = np.argsort(whole["time"], kind="stable")
        return MemoryEvents(**{name: values[order] for name, values in whole.items()})


def _columns(events: Sequence[Any], thread: Callable[[object, object], int]) -> tuple[dict[str, Ints], Bools]:
    """Returns the columns of a batch, and a mask of the events with a usable time and size."""
    time, good = times([event.ts for event in events])
    all_args = [event.args for event in events]
    callers = [(event.pid, event.tid) for event in events]
    thread_of = {caller: thread(*caller) for caller in dict.fromkeys(callers)}  # a batch has few threads
    columns = {
        "time": time,
        "thread": np.array([thread_of[caller] for caller in callers], np.int64),
        "address": whole_numbers([args.address or 0 for args in all_args]),
        "size": whole_numbers([args.allocated_bytes or 0 for args in all_args]),
        "allocated": whole_numbers([args.total_allocated or 0 for args in all_args]),
        "reserved": whole_numbers([args.total_reserved or 0 for args in all_args]),
        "device_type": whole_numbers([args.memory_device_type or 0 for args in all_args]),
        "device": whole_numbers([args.memory_device or 0 for args in all_args]),
    }
    return columns, good & (columns["size"] != 0)
