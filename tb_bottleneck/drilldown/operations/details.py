"""All calls of one operator or kernel, grouped by shapes, callers, kernels, lines and modules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.drilldown.group_by_name import groups_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.operations.operator_rows import operator_rows_of
from tb_bottleneck.measures.user_code.places import HostTimes, located, places_of
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import MODULE
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Ints, Table, column

MAX_ROWS = 50
_MAX_TEXT = 300


@dataclass(frozen=True, eq=False)
class Calls(Table):
    """All calls of the operators or kernels with one name. There is one row per call."""

    start: Ints = column("ns", "start of the operator or kernel")
    end: Ints = column("ns", "end of the operator or kernel")
    device: Ints = column("ns", "device time; for an operator, including the operators that it calls")
    host: Ints = column("ns", "host time of the operator itself; 0 for a kernel")
    operator: Ints = column("row of events", "this operator; for a kernel, the launching operator; -1 for none")
    caller: Ints = column("row of events", "the operator that calls this operator or launches this kernel; -1 for none")
    thread: Ints = column("row of threads", "the thread that makes the call; -1 if the launch is not known")
    issued: Ints = column("ns", "when the host made the call; -1 if the launch is not known")


def details_of(inspected: InspectedTrace, operator: str | None, kernel: str | None) -> pb.Details:
    """Returns the details of the operator or the kernel with this name. One of the two names must be None.

    If the name is longer than MAX_SHOWN characters, it may be cut to MAX_SHOWN characters.

    Raises:
        NotFound: nothing with this name ran in the window (the steps that the report is about).
    """
    recording = inspected.recording
    name = operator or kernel or ""
    calls = None
    if recording is not None:
        calls = _operators(recording, name) if operator else _kernels(recording, name)
    if recording is None or calls is None or not len(calls):
        raise NotFound(f"nothing called {name[:_MAX_TEXT]!r} ran in the window of this recording")
    events, names = recording.trace.events, recording.trace.names
    details = pb.Details(name=name)
    length = calls.device if recording.on_device else calls.end - calls.start
    signature = np.where(calls.operator >= 0, events.signature[calls.operator], 0)
    _add(details.shapes, calls, length, signature, lambda row: _shapes(recording, row))
    caller = np.where(calls.caller >= 0, events.name[calls.caller], -1)
    _add(details.callers, calls, length, caller, lambda row: names[row] if row >= 0 else "called by no operator")
    if operator:
        _add_kernels(recording, name, details)
    _add_places(recording, calls, length, details)
    return details


def _operators(recording: Recording, name: str) -> Calls:
    rows, events = operator_rows_of(recording), recording.trace.events
    own = np.flatnonzero(np.isin(events.name[rows.row], _numbers(recording, name)))
    row, parent = rows.row[own], rows.parent[own]
    return Calls(
        start=events.start[row],
        end=events.end[row],
        device=rows.device_total[own],
        host=rows.host[own],
        operator=row,
        caller=np.where(parent >= 0, rows.row[parent], -1),
        thread=events.thread[row],
        issued=events.start[row],
    )


def _kernels(recording: Recording, name: str) -> Calls:
    trace, steps = recording.trace, recording.steps
    ops, calls = trace.device_ops, trace.calls
    inside = (ops.end > steps.begin) & (ops.start < steps.end)
    rows = np.flatnonzero(inside & np.isin(ops.name, _numbers(recording, name)))
    ops = ops.take(rows)
    operator, thread, issued = np.full((3, len(rows)), -1, np.int64)
    if len(calls):
        has_operator, of_call = trace.calling_operators
        operator = np.where(ops.launched & has_operator[ops.call], of_call[ops.call], -1)
        thread = np.where(ops.launched, calls.thread[ops.call], -1)
        issued = np.where(ops.launched, calls.start[ops.call], -1)
    length = ops.end - ops.start
    return Calls(ops.start, ops.end, length, np.zeros(len(rows), np.int64), operator, operator, thread, issued)


def _numbers(recording: Recording, name: str) -> list[int]:
    """Returns the indices of the trace's names that equal `name`, or that begin with `name` if a table cut it."""
    whole = len(name) < MAX_SHOWN
    names = recording.trace.names
    return [row for row, each in enumerate(names) if (each == name if whole else each.startswith(name))]


MAX_SHOWN = 600
"""Number of characters to which tables cut names."""


def _add(rows: Any, calls: Calls, length: Ints, key: Ints, text: Callable[[int], str]) -> None:
    """Adds one row to `rows` for each distinct value of `key`, in descending order of the sum of `length`.

    `key` and `length` (ns) have one element per call. `text` is a function from a value of `key` to the name of the
    row.
    """
    groups = groups_of(key, np.zeros(len(calls), np.int64), length)
    device, host = groups.summed(calls.device), groups.summed(calls.host)
    for group in np.lexsort((-host, -groups.total))[:MAX_ROWS].tolist():
        longest = groups.longest[group]
        rows.add(
            name=text(int(groups.value[group]))[:_MAX_TEXT],
            calls=int(groups.count[group]),
            device_ns=float(device[group]),
            host_ns=float(host[group]),
            min_ns=float(length[groups.shortest[group]]),
            mean_ns=float(groups.total[group]) / int(groups.count[group]),
            max_ns=float(length[longest]),
            begin_ns=float(calls.start[longest]),
            end_ns=float(calls.end[longest]),
        )


def _add_kernels(recording: Recording, name: str, details: pb.Details) -> None:
    """Adds to `details` the kernels and copies that the operator `name` launches itself."""
    trace, steps = recording.trace, recording.steps
    ops = trace.device_ops
    if not len(trace.calls) or not len(ops):
        return
    has_operator, operator = trace.calling_operators
    inside = ops.launched & has_operator[ops.call] & (ops.end > steps.begin) & (ops.start < steps.end)
    rows = np.flatnonzero(inside)
    rows = rows[np.isin(trace.events.name[operator[ops.call[rows]]], _numbers(recording, name))]
    own = ops.take(rows)
    zeros, none = np.zeros(len(rows), np.int64), np.full(len(rows), -1)
    calls = Calls(own.start, own.end, own.end - own.start, zeros, none, none, none, none)
    _add(details.kernels, calls, calls.device, own.name, lambda row: trace.names[row])


def _add_places(recording: Recording, calls: Calls, length: Ints, details: pb.Details) -> None:
    """Adds to `details` the functions of the program that make `calls`, each with its call chain, and the modules
    (nn.Module) in which the calls are made. `length` is the time of each call in ns."""
    trace, events = recording.trace, recording.trace.events
    moments = HostTimes(calls.thread, calls.issued, np.maximum(length, 1).astype(np.float64))
    found = located(recording, moments)
    module = np.where(found.module >= 0, events.name[found.module], -1)
    if (module >= 0).any():
        _add(
            details.modules,
            calls,
            length,
            module,
            lambda row: _module(trace.names[row]) if row >= 0 else "in no module",
        )
    for place in places_of(recording, moments):
        where = f"{place.file}({place.line}): {place.function}" if place.file else place.block
        device, host = float(calls.device.sum()) * place.share, float(calls.host.sum()) * place.share
        details.lines.add(name=where, device_ns=device, host_ns=host, chain=place.chain)


def _module(name: str) -> str:
    return name.removeprefix(MODULE)


def _shapes(recording: Recording, signature: int) -> str:
    """Returns the shapes and types of the tensor inputs in `signature` as text: "[64, 128] float, [128] float"."""
    operands = operands_of(recording.trace.signatures[signature]) if signature else None
    if operands is None:
        return "shapes not recorded"
    types = (*operands.types, *[""] * len(operands.dims))
    inputs = [f"{_shape(dims)} {of_type}".strip() for dims, of_type in zip(operands.dims, types, strict=False) if dims]
    return ", ".join(inputs) or "no tensors"


def _shape(dims: tuple[Any, ...]) -> str:
    return "[" + ", ".join(_shape(each) if isinstance(each, tuple) else str(each) for each in dims) + "]"
