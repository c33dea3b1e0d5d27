"""The memory of one device in a trace: blocks, phases, categories and the state at the peak."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.memory.allocation_phases import calls_of, constructed
from tb_bottleneck.memory.block_roles import caches, categories_of_calls
from tb_bottleneck.memory.blocks import bytes_before
from tb_bottleneck.memory.categories import CATEGORIES, INDEX, Category, MemoryAccount
from tb_bottleneck.memory.phases import Phase, Phases, find_phases
from tb_bottleneck.memory.recorded_memory import RecordedMemory
from tb_bottleneck.memory.sites import Place, TracePlaces
from tb_bottleneck.memory.weights import state_per_parameter, weights_read
from tb_bottleneck.trace.columns.memory_events import CPU_DEVICE_TYPE, MemoryEvents
from tb_bottleneck.trace.table import Ints, Rows
from tb_bottleneck.trace.trace import Trace

_KINDS = {0: "cpu", 1: "cuda", 6: "rocm", 12: "xpu"}  # c10/core/DeviceType.h


@dataclass(frozen=True, eq=False)
class TraceMemory(RecordedMemory):
    """The memory of one device in a trace. `recorded` are its allocations and frees."""

    trace: Trace
    recorded: MemoryEvents

    @property
    def events(self) -> MemoryEvents:
        return self.recorded

    @property
    def on_cpu(self) -> bool:
        """True if the events are about host memory. The totals of such events leave out memory that was allocated
        before the recording."""
        return int(self.events.device_type[0]) == CPU_DEVICE_TYPE

    @property
    def kind(self) -> str:
        """The kind of the device: cuda, rocm, cpu, xpu or other."""
        return _KINDS.get(int(self.events.device_type[0]), "other")

    @cached_property
    def phases(self) -> Phases:
        """The phases of the training."""
        return find_phases(self.trace)

    @cached_property
    def category(self) -> Ints:
        """The category of each block, as an index into CATEGORIES."""
        calls = calls_of(self.trace, self.blocks, self.phases)
        category = categories_of_calls(calls)
        if not self.phases.trains:
            _, place = distinct_rows(*(self.place_keys(np.arange(len(self.blocks))).T + 1))
            category[caches(calls, place)] = INDEX[Category.KEPT]
        category[constructed(self.blocks, self.phases, category)] = INDEX[Category.PARAMETERS]
        return category

    @cached_property
    def _places(self) -> TracePlaces:
        return TracePlaces(self.trace, self.blocks)

    def place_keys(self, chosen: Rows) -> Ints:
        return self._places.keys(chosen)

    def place(self, key: list[int]) -> Place:
        return self._places.place(key)

    @cached_property
    def earlier(self) -> int:
        """Bytes that were allocated before the recording and are not freed in it. Always 0 on the CPU, whose totals do
        not count these bytes."""
        if self.on_cpu:
            return 0
        return bytes_before(self.events, self.blocks)

    @cached_property
    def in_use(self) -> Ints:
        """Allocated bytes after each event, one value per event. Estimated bytes from before the recording (on the CPU)
        are not included."""
        freed_later = int(self.blocks.size[~self.blocks.known_begin].sum())
        return np.asarray(self.earlier + freed_later + np.cumsum(self.events.size), np.int64)

    @cached_property
    def gradient_bytes(self) -> int:
        """Bytes of the gradients that one backward pass allocates, which equal the bytes of the trained parameters. Of
        several passes, the pass with the most bytes counts. 0 if unknown."""
        chosen = self.category == INDEX[Category.GRADIENTS]
        interval = self.phases.at(self.blocks.begin[chosen & self.blocks.known_begin])
        in_backward = self.phases.phase[interval] == Phase.BACKWARD
        sums = np.bincount(interval[in_backward], self.blocks.size[chosen & self.blocks.known_begin][in_backward])
        return int(sums.max(initial=0))

    @cached_property
    def account(self) -> MemoryAccount:
        """The memory at the peak, divided into categories."""
        row, sums = self.peak_row, self.categories_at_peak
        assert row is not None  # trace_memory() returns no memory without events
        bytes_of = {category: int(sums[INDEX[category]]) for category in CATEGORIES}
        before = self._before(bytes_of)
        for category, size in before.items():
            bytes_of[category] += size
        reserved, allocated = int(self.events.reserved[row]), int(self.in_use[row])
        if not self.on_cpu:
            unusable = self._unusable(row)
            bytes_of[Category.FRAGMENTATION] = unusable
            bytes_of[Category.CACHE] = max(reserved - allocated, 0) - unusable
        facts = None if self.on_cpu else self.trace.header.device(int(self.events.device[0]))
        return MemoryAccount(
            bytes_of=bytes_of,
            source="trace",
            kind=self.kind,
            allocated=allocated,
            reserved=allocated if self.on_cpu else reserved,
            estimated=sum(before.values()) if self.on_cpu else 0,
            capacity=None if facts is None else facts.memory,
        )

    @cached_property
    def state_bytes(self) -> int | None:
        """Bytes of the optimizer's state, computed from its class and the bytes of the parameters; None if the class is
        unknown."""
        factor = state_per_parameter(self.trace)
        return None if factor is None else round(factor * self.gradient_bytes)

    def _before(self, seen: dict[Category, int]) -> dict[Category, int]:
        """Returns a dict with the bytes by category that were allocated before the recording. `seen` has the bytes by
        category that were allocated in the recording.

        The size of the parameters is estimated from their gradients. If the weights that operators read are larger, as
        in inference and with frozen parameters, their size is used. The optimizer's state is a multiple of the
        gradients.

        On a device, the totals show how many bytes were allocated before the recording. They limit both estimates, and
        the remaining bytes are BEFORE_RECORDING. On the CPU, no totals limit the estimates, so the parameters are
        estimated from gradients only."""
        size = self.gradient_bytes if self.on_cpu else max(self.gradient_bytes, weights_read(self.trace))
        parameters = max(size - seen[Category.PARAMETERS], 0)
        state = max((self.state_bytes or 0) - seen[Category.OPTIMIZER], 0)
        if self.on_cpu:
            return {Category.PARAMETERS: parameters, Category.OPTIMIZER: state}
        parameters = min(parameters, self.earlier)
        state = min(state, self.earlier - parameters)
        rest = self.earlier - parameters - state
        return {Category.PARAMETERS: parameters, Category.OPTIMIZER: state, Category.BEFORE_RECORDING: rest}

    def _unusable(self, row: int) -> int:
        """Returns the reserved bytes that were free when the reserved memory last grew before the peak (the event
        `row`), at most the free bytes at the peak. They were unusable, because no free region was large enough for the
        request."""
        reserved = self.events.reserved[: row + 1]
        grown = np.flatnonzero(np.diff(reserved) > 0) + 1
        if not len(grown):
            return 0
        free = int(reserved[grown[-1] - 1] - self.in_use[grown[-1] - 1])
        return min(max(free, 0), max(int(reserved[-1] - self.in_use[row]), 0))


def trace_memory(trace: Trace) -> TraceMemory | Missing:
    """Returns the memory of the device that does the work in `trace`, or of the host if there is no device work.
    Returns Missing, with the reason, if memory events are absent or incomplete."""
    events = trace.memory
    if not len(events):
        return Missing("no memory events were recorded (profile_memory=True)")
    if not events.with_addresses:
        return Missing("the memory events have no addresses: torch before 1.10 wrote only sizes")
    on_device = events.device_type != CPU_DEVICE_TYPE
    events = _of_one_device(events.take(on_device if len(trace.device_ops) else ~on_device), trace.device_index)
    if not len(events):
        return Missing("no memory events of the device that does the work were recorded")
    if not events.whole_chain:
        return Missing("memory events are lost: the allocator's totals do not match its calls")
    return TraceMemory(trace, events)


def _of_one_device(events: MemoryEvents, index: int) -> MemoryEvents:
    """Returns the events of the device with the index `index`. If there are none, because ROCm numbers devices
    differently, returns the events of the device with the most events."""
    devices, counts = np.unique(events.device, return_counts=True)
    if len(devices) > 1 and index in devices.tolist():
        return events.take(events.device == index)
    return events if len(devices) < 2 else events.take(events.device == devices[np.argmax(counts)])
