"""Floating-point operations and bytes of the operators, from their recorded shapes."""

import numpy as np

from tb_bottleneck.drilldown.tree.host_rows import HostRows
from tb_bottleneck.order_statistics import distinct_rows
from tb_bottleneck.roofline.bytes_moved import bytes_moved
from tb_bottleneck.roofline.flops import flops
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Floats, Ints
from tb_bottleneck.trace.trace import Trace


def operator_work(trace: Trace, host: HostRows) -> tuple[Floats, Floats]:
    """Returns the floating-point operations and the minimum bytes of each row of the events; 0 if they are not known.

    Of nested operators that describe the same work (linear, addmm), only the innermost one counts.
    """
    events, rows = trace.events, trace.rows(Kind.CPU_OP)
    rows = rows[events.signature[rows] > 0]
    work = np.zeros((2, len(events)))
    if not len(rows):
        return work[0], work[1]
    first, kind = distinct_rows(events.name[rows], events.signature[rows])
    of_kind = np.array([_work(trace, int(events.name[row]), int(events.signature[row])) for row in rows[first]]).T
    work[:, rows] = of_kind[:, kind]
    for values in work:
        values[_with_inner(host, values > 0)] = 0
    return work[0], work[1]


def _with_inner(host: HostRows, counted: Bools) -> Ints:
    """Returns the counted rows that enclose another one."""
    near, rows = host.nearest(counted), np.flatnonzero(counted)
    above = host.parent[rows]
    return near[above[above >= 0]][near[above[above >= 0]] >= 0]


def _work(trace: Trace, name: int, signature: int) -> tuple[float, float]:
    operands = operands_of(trace.signatures[signature])
    if operands is None:
        return 0.0, 0.0
    operator = trace.names[name]
    moved = bytes_moved(operator, operands.dims, operands.types, operands.concrete)
    return float(flops(operator, operands.dims, operands.concrete) or 0), float(moved or 0)
