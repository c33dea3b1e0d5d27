"""A trace as tables, and the function that reads it from a file. Derived data is cached in the trace."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tb_bottleneck.base.errors import NotATrace
from tb_bottleneck.sources.kineto import KinetoReader
from tb_bottleneck.trace.call_lines import KEY, NO_LINES, CallLines, read_call_lines
from tb_bottleneck.trace.columns.counters import Counters
from tb_bottleneck.trace.columns.device_clock import with_host_clock
from tb_bottleneck.trace.columns.graph_dependencies import Flows
from tb_bottleneck.trace.columns.labels import Thread
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.columns.messages import Message
from tb_bottleneck.trace.columns.packed_column import packed, return_freed_memory
from tb_bottleneck.trace.columns.valid_ranges import within_ranges
from tb_bottleneck.trace.device_ops import DeviceOps, Work, device_ops_of, work_from_operators
from tb_bottleneck.trace.events import Events, EventsBuilder
from tb_bottleneck.trace.header import Header, read_header
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.process_facts import add_compile_log, add_run
from tb_bottleneck.trace.runtime_calls import Calls, calls_of
from tb_bottleneck.trace.stackless_steps import StacklessSteps, split_off
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread

# Results of Trace.rows are cached if they have at most this share of the events. Larger ones take more memory than some
# columns.
MOST_KEPT = 0.25


@dataclass(frozen=True, eq=False)
class Trace:
    """The trace of one process.

    `names` and `threads` are the interned names and threads, to which columns of the tables refer by row.

    `lost` maps a reason to the number of events or values that are left out for this reason. `truncated` is a text that
    describes how the file ended early, or empty if the file is complete.
    """

    header: Header
    events: Events
    names: tuple[str, ...]
    threads: tuple[Thread, ...]
    signatures: tuple[tuple[bytes, bytes, bytes], ...]
    messages: tuple[Message, ...]
    lost: Counter[str]
    truncated: str
    memory: MemoryEvents = field(default_factory=MemoryEvents.empty)
    chosen_device: int | None = None
    call_lines: CallLines = NO_LINES
    counters: Counters = field(default_factory=Counters.empty)
    counter_names: tuple[str, ...] = ()
    flows: Flows = field(default_factory=Flows.empty)
    stackless: StacklessSteps | None = None
    """Steps that were recorded without stacks, after all other steps. The tables above do not contain these steps."""
    clock_shift_ns: int = 0
    """Time by which the device's work was moved, because its clock differed from that of the host."""

    def rows(self, *kinds: Kind) -> Rows:
        """Returns the row numbers of the events whose kind is one of `kinds`, in order of start."""
        rows = self._rows.get(kinds)
        if rows is None:
            wanted = np.zeros(len(self.events), np.bool_)
            for kind in kinds:
                wanted |= self.events.kind == kind
            rows = np.flatnonzero(wanted)
            rows.flags.writeable = False
            if len(rows) <= MOST_KEPT * len(wanted):
                self._rows[kinds] = rows
        return rows

    @cached_property
    def _rows(self) -> dict[tuple[Kind, ...], Rows]:
        """Cache of small results of `rows()`. It saves time because most measures ask for the same few kinds."""
        return {}

    @cached_property
    def calls(self) -> Calls:
        """Runtime and driver calls, sorted by start."""
        return calls_of(self.events, self.names)

    @cached_property
    def all_device_ops(self) -> DeviceOps:
        """Kernels, copies and fills on all devices, sorted by start."""
        ops = device_ops_of(self.events, self.names, self.calls)
        if not len(self.calls) or not (ops.work == Work.UNKNOWN).any():
            return ops
        called, operator = self.calling_operators
        names = self.events.name[operator[ops.call]]
        work = work_from_operators(ops.work, ops.launched & called[ops.call], names, self.names)
        return replace(ops, work=packed(work))

    @cached_property
    def dependencies(self) -> tuple[Rows, Rows]:
        """Recorded dependencies between device operations, as two arrays of rows of `all_device_ops`.

        Operation i of the first array must end before operation i of the second array starts.
        """
        ops = self.all_device_ops
        return self.flows.operations(ops.start[:], ops.end[:], ops.queue[:])

    @cached_property
    def calling_operators(self) -> tuple[Bools, Ints]:
        """Two arrays with one element per call in `calls`: True if an operator makes the call, and the event row of the
        innermost operator that makes the call.

        The event row is valid only if the first value is True. Calls and operators are matched by time and thread,
        because the argument `External id` is missing or wrong in many recordings.
        """
        called = np.zeros(len(self.calls), np.bool_)
        operator = np.zeros(len(self.calls), np.int64)
        operators = by_thread(self.rows(Kind.CPU_OP), self.events.thread)
        for thread, mine in by_thread(np.arange(len(self.calls)), self.calls.thread).items():
            rows = operators.get(thread)
            if rows is not None:
                called[mine], row = innermost(self.events.start[rows], self.events.end[rows], self.calls.start[mine])
                operator[mine] = rows[row]
        return called, operator

    @cached_property
    def reads(self) -> Bools:
        """A mask of `calls`: True if the call copies data from a device to the host."""
        reads = np.zeros(len(self.calls), np.bool_)
        ops = self.all_device_ops
        reads[ops.call[ops.launched & (ops.work == Work.DOWNLOAD)]] = True
        return reads

    @cached_property
    def device_index(self) -> int:
        """Index of the device that the report is about.

        It is `chosen_device` if this is set, otherwise the device with the most operations, or 0 if there are none.
        """
        if self.chosen_device is not None:
            return self.chosen_device
        devices, counts = np.unique(self.all_device_ops.device, return_counts=True)
        return int(devices[np.argmax(counts)]) if len(devices) else 0

    @cached_property
    def multiprocessors(self) -> int | None:
        """Number of multiprocessors of the device `device_index`; None if unknown.

        It is taken from the header, or else it is the median of the numbers derived from the arguments of kernels.
        """
        facts = self.header.device(self.device_index)
        if facts is not None and facts.multiprocessors is not None:
            return facts.multiprocessors
        counts = self.events.multiprocessors[(self.events.kind == Kind.KERNEL) & (self.events.multiprocessors > 0)]
        return int(np.median(counts)) if len(counts) else None

    @cached_property
    def device_ops(self) -> DeviceOps:
        """Kernels, copies and fills on the device `device_index`, sorted by start."""
        ops = self.all_device_ops
        own = ops.device == self.device_index
        return ops if own.all() else ops.take(own)


def load(path: str, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Reads the trace file at `path`. Damaged events are skipped and counted in Trace.lost.

    `progress` is called repeatedly with the number of bytes read so far and the size of the file in bytes.

    Raises:
        NotFound: the file does not exist.
        Unreadable: the file contains no trace.
        NotATrace: the file is JSON of another kind.
    """
    builder = EventsBuilder()
    reader = KinetoReader(path, progress, categories=builder.categories)
    for batch in reader.batches():
        builder.add(batch)
    return_freed_memory()
    memory = builder.memory()
    counters, counter_names = builder.counters()
    flows = builder.flows()
    events, memory, out_of_range = within_ranges(builder.build(), memory)
    events, clock_shift_ns = with_host_clock(events)
    if clock_shift_ns:  # dependencies and counters are matched by the recorded times of the device
        counters, counter_names, flows = Counters.empty(), (), Flows.empty()
    return_freed_memory()
    lost = reader.lost + builder.lost + out_of_range
    _refuse_other_objects(len(events) + len(memory), lost)
    raw = reader.header
    header, names, threads = read_header(raw), builder.names(), builder.threads()
    events, memory, stackless = split_off(raw, events, names, memory)
    add_compile_log(path, header, events, names, threads)
    add_run(path, header)
    return Trace(
        header=header,
        events=events,
        names=names,
        threads=threads,
        signatures=builder.signatures(),
        messages=builder.messages(),
        lost=lost,
        truncated=reader.truncated,
        memory=memory,
        call_lines=read_call_lines(raw.get(KEY), header.base_time_ns, events),
        counters=counters,
        counter_names=counter_names,
        flows=flows,
        stackless=stackless,
        clock_shift_ns=clock_shift_ns,
    )


def _refuse_other_objects(kept: int, lost: Counter[str]) -> None:
    """Raises NotATrace if no object in the file is an event of a trace, so that none has a phase ("ph").

    `kept` is the number of usable events, and `lost` has the number of other objects by reason.
    """
    without_phase = lost["no phase"]
    if not kept and without_phase and without_phase == lost.total():
        raise NotATrace(
            f"This is JSON of another kind: none of its {without_phase:,} objects is an event of a trace. Events have "
            'the keys "ph", "ts" and "name".'
        )
