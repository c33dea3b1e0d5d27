"""Finds the collectives and messages of a recording, with their arguments.

For communications on a device, the arguments are those of the operator `record_param_comms` that encloses the launch,
or their copy in the event of the kernel. Old recordings have only the annotation `nccl:NAME`. A batch of messages
(`nccl:coalesced`) is launched as one kernel, after the operators of its messages. Gloo runs on the host: its rows have
neither group nor sequence number, which come from the monitor.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from tb_bottleneck.attribution.cpu_collectives import host_collectives
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.communication.avoidable_exchanges import repeated_exchanges
from tb_bottleneck.jobs.summary.own_time import GroupTable, operation_of, peer_in
from tb_bottleneck.jobs.summary.rank_summary import Communications, Operation
from tb_bottleneck.knowledge.catalogue import group_annotations
from tb_bottleneck.trace.columns.labels import clean
from tb_bottleneck.trace.columns.messages import NO_MESSAGE, Message
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# Largest number of communications of a recording in a summary. A step has some hundred.
MAX_COMMUNICATIONS = 100_000
MAX_SIZE = 1 << 60
ISSUE_NS = 1_000_000
"""Largest difference between the clock of the trace and that of the recorded times of issue. A choice."""
_BYTES_OF_TYPE = {"char": 1, "byte": 1, "bool": 1, "half": 2, "short": 2, "double": 8, "long": 8, "int64": 8}
_SENDS = ("c10d::send", "c10d::recv_", "c10d::recv_any_source_")
_Row = tuple[int, ...]


def communications_of(recording: Recording, groups: GroupTable) -> Communications:
    """Returns the communications that were issued in the judged steps, at most MAX_COMMUNICATIONS. Adds their process
    groups to `groups`."""
    find = _on_device if recording.on_device else _on_host
    rows = [row for row in find(recording.trace, groups) if row[-1] > row[-2]][:MAX_COMMUNICATIONS]
    table = np.array(rows, np.int64).reshape(-1, 11)
    if not recording.on_device:  # threads of Gloo end their last rows while the profiler stops
        table[:, -1] = np.minimum(table[:, -1], recording.steps.end)
        table = table[table[:, -1] > table[:, -2]]
    begin = recording.steps.begin
    step = np.searchsorted(recording.steps.host, table[:, 0], side="right") - 1
    keep = (step >= 0) & (step < len(recording.steps)) & (table[:, -2] >= begin)
    table, step = table[keep], step[keep]
    order = np.empty(len(table), np.int64)
    order[np.argsort(table[:, 0], kind="stable")] = np.arange(len(table))
    by_start = np.lexsort((order, table[:, -2]))
    _, alike = np.unique(table[:, [1, 5]], axis=0, return_inverse=True)  # group and bytes
    kind = np.where(table[:, 2] == Operation.ALL_REDUCE, alike.ravel(), -1)
    repeated = repeated_exchanges(recording, table[:, 0], kind).astype(np.int64)
    columns = [step, order, *table[:, 1:-2].T, repeated, *(table[:, -2:] - begin).T]
    return Communications(*(np.ascontiguousarray(values[by_start]) for values in columns))


def _on_device(trace: Trace, groups: GroupTable) -> Iterator[_Row]:
    """Yields for each communication on the device (issue time, group, operation, sequence, key, bytes, peer, lane,
    skew, start, end). All values except the issue time are columns of Communications. Times are in ns on the trace's
    clock."""
    ops = trace.device_ops.take(trace.device_ops.work == Work.COLLECTIVE)
    ops = ops.take(ops.launched)
    call = ops.call
    annotation = _enclosing(trace, ("nccl:",), call)
    served = _enclosing(trace, tuple({prefix for prefix, *_ in group_annotations()}), call)
    has_operator, operator = trace.calling_operators
    batches = _BatchedMessages(trace)
    for row in range(len(ops)):
        issued, span = int(trace.calls.start[call[row]]), (int(ops.start[row]), int(ops.end[row]))
        mark, name = int(annotation[row]), trace.names[ops.name[row]]
        name = trace.names[trace.events.name[mark]] if mark >= 0 else name
        serves = trace.names[trace.events.name[served[row]]] if served[row] >= 0 else ""
        message = trace.messages[trace.events.message[operator[call[row]]]] if has_operator[call[row]] else NO_MESSAGE
        message = message if message.operation else trace.messages[ops.message[row]]
        messages = [message] if message.operation else []
        if "coalesced" in name and (not message.operation or operation_of(message.operation) is Operation.OTHER):
            messages = batches.before(int(trace.calls.thread[call[row]]), issued) or messages
        lane = int(ops.queue[row])
        for found in messages:
            size = int(ops.bytes[row]) if len(messages) == 1 else _bytes_of(found)
            columns = _columns(found, groups, size)
            groups.count(columns[0], Operation(columns[1]), serves)
            yield (issued, *columns, lane, _skew(found), *span)
        if not messages:
            size = int(ops.bytes[row]) or (_bytes_of_annotation(trace, mark) if mark >= 0 else 0)
            yield (issued, groups.unnamed(), operation_of(name), -1, 0, size, peer_in(name), lane, 0, *span)


def _enclosing(trace: Trace, prefixes: tuple[str, ...], call: Ints) -> Ints:
    """Returns for each runtime call in `call` the innermost enclosing annotation whose name begins with one of
    `prefixes`, as a row of the events; -1 if there is none."""
    times, threads = trace.calls.start[call], trace.calls.thread[call]
    marks = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    marks = marks[name_matches(trace.names, trace.events.name[marks], lambda name: name.startswith(prefixes))]
    rows_of = by_thread(marks, trace.events.thread)
    row = np.full(len(times), -1)
    for thread, mine in by_thread(np.arange(len(times)), threads).items():
        rows = rows_of.get(thread)
        if rows is not None:
            found, inner = innermost(trace.events.start[rows], trace.events.end[rows], times[mine])
            row[mine] = np.where(found, rows[inner], -1)
    return row


class _BatchedMessages:
    """The messages that have no kernel of their own, because a kernel transfers a batch of them. A message belongs to
    the next batch that its thread launches."""

    def __init__(self, trace: Trace) -> None:
        rows = trace.rows(Kind.CPU_OP)
        rows = rows[trace.events.message[rows] > 0]
        self._trace = trace
        self._rows = by_thread(rows, trace.events.thread)
        self._next: dict[int, int] = {}

    def before(self, thread: int, time: int) -> list[Message]:
        """Returns the sends and receives that `thread` issued before `time` (ns) and after the `time` of the previous
        call for this thread."""
        rows: Rows = self._rows.get(thread, np.empty(0, np.intp))
        last = int(np.searchsorted(self._trace.events.start[rows], time))
        first, self._next[thread] = self._next.get(thread, 0), last
        found = [self._trace.messages[self._trace.events.message[row]] for row in rows[first:last].tolist()]
        return [message for message in found if operation_of(message.operation).point_to_point]


def _columns(message: Message, groups: GroupTable, size: int) -> _Row:
    """Returns the columns group, operation, sequence, key, bytes and peer of a communication with `size` bytes."""
    operation = operation_of(message.operation)
    peer = {Operation.SEND: message.destination, Operation.RECV: message.source}.get(operation, -1)
    key = max(message.id, 0)
    signed = key - (1 << 64) if key >= 1 << 63 else key
    return groups.row_of(message), operation, message.sequence, signed, size, peer


def _bytes_of(message: Message) -> int:
    width = 2 if "16" in message.dtype or "Half" in message.dtype else 4
    return max(message.elements_in, message.elements_out, 0) * _BYTES_OF_TYPE.get(message.dtype.lower(), width)


def _skew(message: Message) -> int:
    """Returns (largest part / mean part - 1) of an all-to-all, in per mille; 0 if the sizes are not known."""
    return max(_skew_of(message.split_in), _skew_of(message.split_out))


def _skew_of(text: str) -> int:
    try:
        parts = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return 0
    sizes = [size for size in parts if isinstance(size, int) and size >= 0] if isinstance(parts, list) else []
    total = sum(sizes)
    return min(max(sizes) * len(sizes) * 1000 // total - 1000, 1_000_000) if total else 0


# --- Gloo, MPI and UCC ---


def _on_host(trace: Trace, groups: GroupTable) -> Iterator[_Row]:
    """Yields the communications that run on the host, with the columns of _on_device."""
    events = trace.events
    sends, issued = _send_rows(trace), _issued(trace)
    for row in host_collectives(trace).tolist():
        name, start = trace.names[events.name[row]], int(events.start[row])
        operation = operation_of(name)
        peer = _peer_of(trace, sends, row) if operation.point_to_point else -1
        lane, span = int(events.thread[row]), (start, int(events.end[row]))
        elements, width = _size_of_annotation(trace, row)
        queue = issued.get((name, elements))
        message = queue.popleft()[1] if queue and queue[0][0] <= start else NO_MESSAGE
        size = min(elements * width, MAX_SIZE)
        yield (start, groups.row_of(message), operation, message.sequence, 0, size, peer, lane, 0, *span)


def _issued(trace: Trace) -> Mapping[tuple[str, int], deque[tuple[int, Message]]]:
    """Returns the collectives that were issued during the recording, with their groups and numbers, by name and number
    of elements. Each has the earliest time at which it may run. They come from monitor/facts/process_groups.py."""
    recorded: defaultdict[tuple[str, int], deque[tuple[int, Message]]] = defaultdict(deque)
    rows = trace.header.context.get("host_collectives")
    begin = int(trace.events.start.min(initial=np.iinfo(np.int64).max))
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [int(time), str(name), int(elements), str(group), int(sequence)] if 0 <= sequence < 1 << 62:
                issued = time - trace.header.base_time_ns
                if issued >= begin:
                    recorded[name, elements].append(
                        (issued - ISSUE_NS, Message(name, group=clean(group), sequence=sequence))
                    )
    return recorded


def _send_rows(trace: Trace) -> dict[int, Rows]:
    """Returns for each thread the rows of its operators that send or receive a message."""
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(_SENDS))]
    return by_thread(rows, trace.events.thread)


def _peer_of(trace: Trace, sends: dict[int, Rows], row: int) -> int:
    """Returns the rank at the other end of the message of Gloo in the row `row` of the events; -1 if it is not known.

    The rank is an argument of the operator that issued the message. `sends` is the result of _send_rows.
    """
    rows = sends.get(int(trace.events.thread[row]))
    position = int(np.searchsorted(trace.events.start[rows], trace.events.start[row])) - 1 if rows is not None else -1
    if rows is None or position < 0:
        return -1
    operands = operands_of(trace.signatures[trace.events.signature[rows[position]]])
    # c10d::send(tensors, process_group, dst, tag): torch/csrc/distributed/c10d/Ops.cpp.
    values = operands.concrete[2:3] if operands is not None else ()
    return int(values[0]) if values and values[0].isascii() and values[0].isdecimal() and len(values[0]) < 9 else -1


def _bytes_of_annotation(trace: Trace, row: int) -> int:
    """Returns the bytes of the first input of the event `row`, from its shape and type; 0 if unknown."""
    elements, width = _size_of_annotation(trace, row)
    return min(elements * width, MAX_SIZE)


def _size_of_annotation(trace: Trace, row: int) -> tuple[int, int]:
    """Returns the number of elements of the first input of the event `row`, 0 if unknown, and the bytes of one."""
    operands = operands_of(trace.signatures[trace.events.signature[row]])
    if operands is None or not operands.dims:
        return 0, 1
    width = 2 if operands.types and "16" in operands.types[0] else _width(operands.types)
    shape = operands.dims[0]
    return (prod(shape) if all(isinstance(size, int) for size in shape) else 0), width


def _width(types: tuple[str, ...]) -> int:
    word = types[0].rpartition("::")[2].lower() if types else ""
    return {"signed char": 1, "unsigned char": 1, "long int": 8}.get(word, _BYTES_OF_TYPE.get(word, 4))
