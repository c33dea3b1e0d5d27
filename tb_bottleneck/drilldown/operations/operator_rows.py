"""The calls of operators in a window: host and device time of each call, with and without the operators it calls."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.drilldown.tree.host_rows import sums_with_children
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.kernel_names import passing_names
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows, Table, by_thread, column


@dataclass(frozen=True, eq=False)
class OperatorRows(Table):
    """Calls of operators, sorted by start. There is one row per call that starts in the window or whose device work
    runs in the window. The window has the steps that the report is about."""

    row: Ints = column("row of events", "the call")
    parent: Ints = column("row of operator rows", "the operator that calls it on its thread; -1 for none")
    host: Ints = column("ns", "host time without the operators that it calls")
    device: Ints = column("ns", "time of the kernels and copies that it launches itself")
    device_total: Ints = column("ns", "with those of the operators that it calls")
    kernels: Ints = column("count", "number of these")
    tensor: Ints = column("ns", "part of `device` in kernels on tensor cores")
    known_unit: Ints = column("ns", "part of `device` in kernels whose unit is known")
    reached: Floats = column("share", "share of the roof that it reaches")
    bound_by: Ints = column("BoundBy", "the roof")
    outermost: Bools = column("flag", "False if an operator of the same name calls it, directly or not")


def operator_rows_of(recording: Recording) -> OperatorRows:
    """Returns the calls of operators that belong to the window (the steps that the report is about)."""
    trace, events = recording.trace, recording.trace.events
    rows = _operators_of(recording)
    parent, own = _nesting(recording, rows)
    device, reached, bound_by = device_times(recording, rows)
    launched, index = launches_of(recording, rows)
    length = trace.device_ops.end[launched] - trace.device_ops.start[launched]
    unit = _units(recording, launched)
    totals = [device.astype(np.float64), np.bincount(index, minlength=len(rows)).astype(np.float64)]
    sums_with_children(parent, totals)
    return OperatorRows(
        row=rows,
        parent=parent,
        host=own,
        device=device,
        device_total=totals[0].astype(np.int64),
        kernels=totals[1].astype(np.int64),
        tensor=np.bincount(index, length * (unit == 1), len(rows)).astype(np.int64),
        known_unit=np.bincount(index, length * (unit >= 0), len(rows)).astype(np.int64),
        reached=reached,
        bound_by=bound_by,
        outermost=_outermost(events.name[rows], events.thread[rows], events.start[rows], events.end[rows]),
    )


def _operators_of(recording: Recording) -> Rows:
    """Returns the event rows of the operators that start in the window, or whose device operations run in it."""
    trace = recording.trace
    rows, chosen = trace.rows(Kind.CPU_OP), np.zeros(len(trace.events), np.bool_)
    chosen[rows[recording.in_window(trace.events.start[rows])]] = True
    if len(trace.device_ops) and len(trace.calls):
        has_operator, operator = trace.calling_operators
        ops = trace.device_ops
        running = _running(recording) & ops.launched & has_operator[ops.call]
        chosen[operator[ops.call[running]]] = True
    return np.flatnonzero(chosen)


def _running(recording: Recording) -> Bools:
    """Returns a mask of the device operations: True for operations that run at some time in the window."""
    ops, steps = recording.trace.device_ops, recording.steps
    return (ops.end > steps.begin) & (ops.start < steps.end)


def _nesting(recording: Recording, rows: Rows) -> tuple[Ints, Ints]:
    """Returns two arrays with one element per operator in `rows` (event rows): the index in `rows` of the operator that
    calls this operator, or -1; and the host time in ns without the operators that this operator calls."""
    events = recording.trace.events
    parent, own = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
    for of_thread in by_thread(np.arange(len(rows)), events.thread[rows]).values():
        nesting = nest(events.start[rows[of_thread]], events.end[rows[of_thread]])
        own[of_thread] = nesting.self_times()
        nested = nesting.parent != np.arange(len(of_thread))
        parent[of_thread[nested]] = of_thread[nesting.parent[nested]]
    return parent, own


def _outermost(name: Ints, thread: Ints, start: Ints, end: Ints) -> Bools:
    """Returns a mask of the calls that are not inside another call of the same operator on the same thread."""
    if not len(name):
        return np.zeros(0, np.bool_)
    order = np.lexsort((start, thread, name))
    changes = np.append(True, (np.diff(name[order]) != 0) | (np.diff(thread[order]) != 0))
    group = np.cumsum(changes) - 1
    # The times of each group are shifted, so that all ends of a group are before all starts of the next group.
    low, length = int(start.min()), int(end.max() - start.min()) + 1
    shifted_end = end[order] - low + group * length
    reach = np.append(-1, np.maximum.accumulate(shifted_end)[:-1])
    outermost = np.ones(len(name), np.bool_)
    outermost[order] = start[order] - low + group * length >= reach
    return outermost


def launches_of(recording: Recording, rows: Rows) -> tuple[Ints, Ints]:
    """Returns the device operations in the window that the operators in `rows` (event rows) launch themselves, and for
    each of these operations the index in `rows` of the launching operator."""
    trace, ops = recording.trace, recording.trace.device_ops
    none = np.empty(0, np.int64)
    if not len(ops) or not len(trace.calls) or not len(rows):
        return none, none
    has_operator, operator = trace.calling_operators
    launched = np.flatnonzero(_running(recording) & ops.launched & has_operator[ops.call])
    index = np.minimum(np.searchsorted(rows, operator[ops.call[launched]]), len(rows) - 1)
    in_rows = rows[index] == operator[ops.call[launched]]
    return launched[in_rows], index[in_rows]


def _units(recording: Recording, ops: Ints) -> Ints:
    """Returns for each device operation in `ops`: 1 if it runs on tensor cores, 0 if not, -1 if this is unknown."""
    trace, names = recording.trace, recording.trace.device_ops.name[ops]
    tensor = passing_names(trace.names, names, lambda name: _unit(name) == "tensor")
    vector = passing_names(trace.names, names, lambda name: _unit(name) in ("vector", ""))
    return np.where(tensor[names], 1, np.where(vector[names], 0, -1))


def _unit(name: str) -> str:
    """Returns the unit on which the kernel `name` runs, such as "tensor" or "vector"; empty if the name shows none."""
    precision = precision_of(name)
    return precision.unit if precision is not None else ""


def device_times(recording: Recording, rows: Rows) -> tuple[Ints, Floats, Ints]:
    """Returns three arrays with one element per operator in `rows` (event rows): the time in ns of the device
    operations that it launches, the fraction of the roof that its last operation reaches, and what limits this one
    (BoundBy)."""
    ops, bounds = recording.trace.device_ops, recording.kernel_bounds
    time, reached = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    bound_by = np.full(len(rows), int(BoundBy.UNKNOWN))
    launched, index = launches_of(recording, rows)
    np.add.at(time, index, ops.end[launched] - ops.start[launched])
    reached[index], bound_by[index] = bounds.reached[launched], bounds.bound_by[launched]
    return time, reached, bound_by
