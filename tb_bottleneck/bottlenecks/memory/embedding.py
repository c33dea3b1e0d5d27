"""Measures of embedding tables whose dense gradients make the optimizer update all rows, although a batch uses few."""

from math import prod

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.base.units import share_text
from tb_bottleneck.measures.trace.window_rows import host_rows, in_host_steps, in_window, window_share
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import MAX_ELEMENTS, Operands, Shape, operands_of
from tb_bottleneck.trace.table import Floats, Rows

_BACKWARD = "aten::embedding_dense_backward"
_FILLS = frozenset({"aten::zero_", "aten::fill_"})
"""Operators that set a dense gradient to zero."""
FEW_ROWS = 0.1
"""A table counts if a batch uses at most this share of its rows. A sparse update costs several times as much per row as
a dense one: it sorts the indices, and sums up rows that occur several times. A choice."""


class Table(Record, frozen=True):
    """An embedding table: its shape, and the most rows that a batch can use (the number of indices)."""

    rows: int
    width: int
    used: int


@memoized
def dense_tables(recording: Recording) -> tuple[Table, ...]:
    """Returns the tables with dense gradients of which a batch uses few rows, the largest first; empty without recorded
    shapes."""
    trace = recording.trace
    rows = host_rows(recording, lambda name: name == _BACKWARD, Kind.CPU_OP)
    used: dict[tuple[int, int], int] = {}
    for signature in np.unique(trace.events.signature[rows]).tolist():
        operands = operands_of(trace.signatures[signature]) if signature else None
        table = _table(operands) if operands is not None else None
        if table is not None:
            used[table.rows, table.width] = used.get((table.rows, table.width), 0) + table.used
    tables = (Table(*shape, used=number) for shape, number in used.items())
    return tuple(sorted((each for each in tables if each.used <= FEW_ROWS * each.rows), key=lambda each: -each.rows))


def _table(operands: Operands) -> Table | None:
    """Returns the table of a call of _BACKWARD, with the inputs gradient, indices and number of rows."""
    try:
        (*_, width), indices, rows = operands.dims[0], operands.dims[1], int(operands.concrete[2])
        known = indices and 0 < rows <= MAX_ELEMENTS
        return Table(rows, int(width), prod(int(size) for size in indices)) if known else None
    except (IndexError, TypeError, ValueError):
        return None


def dense_update_share(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device sets the dense gradients of such tables to zero, or updates the rows of
    the tables."""
    if not recording.on_device:
        spans = dense_update_spans(recording)
        return window_share(recording, spans.starts, spans.ends) if len(spans) else Missing("no such table")
    ops = recording.trace.device_ops
    share = table_part(recording)
    inside = in_window(recording, *(Work(work) for work in COMPUTE_KERNELS))
    spent = float(((ops.end - ops.start) * share)[inside].sum())
    found = int(((share > 0) & inside).sum())
    return Measure(spent / recording.account.window, "share", "window", found) if found else Missing("no such table")


@memoized
def dense_update_spans(recording: Recording) -> Spans:
    """Returns the time of the host's operators that set the dense gradients of such tables to zero, or update only such
    tables."""
    events, rows = recording.trace.events, recording.trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])] if dense_tables(recording) else rows[:0]
    rows = rows[_parts(recording, rows) == 1.0]
    return union(events.start[rows], events.end[rows])


def table_rows_used(recording: Recording) -> Measure | Missing:
    """The largest such table and the rows that a batch uses, as text."""
    tables = dense_tables(recording)
    if not tables:
        return Missing("no such table")
    table = tables[0]
    used = f"at most {table.used:,} of {table.rows:,} rows ({share_text(table.used / table.rows)})"
    return text_measure(f"{used}, {table.width} values each")


@memoized
def table_part(recording: Recording) -> Floats:
    """Returns for each device operation the part (0 to 1) of its elements that are in such tables, if it updates
    parameters or sets gradients to zero; 0 for other operations."""
    trace, ops = recording.trace, recording.trace.device_ops
    part = np.zeros(len(ops))
    if dense_tables(recording):
        called, operator = trace.calling_operators
        rows = np.flatnonzero(ops.launched)
        rows = rows[called[ops.call[rows]]]
        part[rows] = _parts(recording, operator[ops.call[rows]])
    return part


def _parts(recording: Recording, operators: Rows) -> Floats:
    """Returns for each of `operators`, rows of `trace.events`, the value of `table_part`."""
    trace, events = recording.trace, recording.trace.events
    shapes = {(table.rows, table.width) for table in dense_tables(recording)}
    first, which = distinct_rows(events.signature[operators])
    parts = np.array([_part(trace.signatures[number], shapes) for number in events.signature[operators][first]])
    updates = recording.optimizer_steps.contains(events.start[operators])
    updates |= name_matches(trace.names, events.name[operators], _FILLS.__contains__)
    return np.where(updates, parts[which] if len(parts) else 0.0, 0.0)


def _part(signature: tuple[bytes, bytes, bytes], shapes: set[tuple[int, int]]) -> float:
    """Returns the part of the elements of the first tensor, or list of tensors, that are in tensors of `shapes`."""
    operands = operands_of(signature)
    tensors: list[Shape] = []
    if operands is not None and operands.dims and operands.dims[0]:
        first = operands.dims[0]
        tensors = [each for each in first if each] if isinstance(first[0], tuple) else [first]
    sizes = [(prod(shape), tuple(shape) in shapes) for shape in tensors]
    return sum(size for size, known in sizes if known) / max(sum(size for size, _ in sizes), 1)
