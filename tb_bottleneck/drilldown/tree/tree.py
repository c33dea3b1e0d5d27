"""Builds the tree: for each node the time by regime, host and device time, waits, bytes, operations, and memory.

The time by regime is the time of the window (the account of the report), split by the events that cause it. Over all
nodes, it sums to the window. The device time and the host time of a node are sums of the lengths of events, as in other
profilers. These sums can exceed the window, because events of several streams or threads overlap.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.base.units import bytes_text
from tb_bottleneck.drilldown.tree.host_rows import ROOT, HostRows, operator_work, sums_with_children
from tb_bottleneck.drilldown.tree.owned_pieces import NOTHING, UNMAPPED, Pieces, launching_rows, owned_pieces
from tb_bottleneck.drilldown.tree.paths import MAX_TEXT, Paths, paths_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import short
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Floats, Ints
from tb_bottleneck.trace.trace import Trace

COLUMNS = ("device", "host", "wait", "backward", "bytes", "flops", "memory", "bounded", "ideal")
"""The columns of a tree besides the time by regime: times in ns, bytes and floating-point operations.

`device` is the time of device operations, `host` the time of events on the host, and `wait` the time of calls that
waited for the device. `backward` is the part of the time by regime that belongs to the backward pass. `bytes` has the
sizes of copies and the minimum traffic of operators with recorded shapes. `memory` has the bytes allocated on the
device. `bounded` is the time of device operations whose roof is known from their shapes, and `ideal` the time that they
would take at this roof: `ideal / bounded` is the share of the roofline that they reach.
"""

_OUTSIDE = {
    "module": "outside of modules",
    "line": "outside of the program",
    "operator": "outside of operators",
    "range": "outside of ranges",
    "kernel": "no kernel runs",
    "communication": "no communication",
}
_UNMAPPED = "unmapped"
_CPU, _CUDA, _HIP = 0, 1, 6


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree as arrays with one element per node. Node 0 is the root. The parent of a node has a smaller number.

    The values of a node include the values of the nodes below it. Only `calls` does not: it is the number of events of
    the node itself. `regimes` has the shape (REGIMES, nodes), in ns. `begin` and `end` are the start and the end of the
    longest event of the node, in ns; both are equal if the node has no event. `window` is the length of the window in
    ns, and `steps` its number of steps.
    """

    by: str
    parent: Ints
    kind: tuple[str, ...]
    name: tuple[str, ...]
    regimes: Floats
    columns: dict[str, Floats]
    calls: Floats
    begin: Ints
    end: Ints
    window: int
    steps: int
    window_begin: int  # ns, on the recording's own clock

    @property
    def exclusive(self) -> Floats:
        """For each node the time in ns that the account of the window gives to the node or to a node below it. Nodes
        with the same parent share no time."""
        return np.asarray(self.regimes.sum(axis=0), np.float64)

    def own(self, values: Floats) -> Floats:
        """Returns the part of the column `values` that belongs to each node itself, without the nodes below it."""
        below = np.zeros_like(values)
        np.add.at(below, self.parent[1:], values[1:])
        return values - below


def tree_of(recording: Recording, host: HostRows, by: str, merged: bool = False) -> Tree:
    """Returns the tree of a recording's window. `by` and `merged` are as in paths.paths_of."""
    paths = paths_of(recording, host, by, merged)
    leaves = _Leaves(recording, paths, by)
    pieces = owned_pieces(recording, host)
    charges = _Charges(leaves)
    charges.add_pieces(pieces)
    charges.add_device(recording)
    charges.add_host(recording, host)
    return charges.tree(recording, by)


class _Leaves:
    """The nodes of operators and kernels. They are the leaves of the tree, below the nodes of the paths."""

    def __init__(self, recording: Recording, paths: Paths, by: str) -> None:
        self._paths, self._trace = paths, recording.trace
        events, labels, forest = self._trace.events, paths.labels, paths.forest
        outside, unmapped = labels.add("outside", _OUTSIDE[by]), labels.add("unmapped", _UNMAPPED)
        self.outside, self._unmapped = forest.add(np.array([ROOT, ROOT]), np.array([outside, unmapped])).tolist()
        base = np.where(paths.node == ROOT, self.outside, paths.node)
        has = np.flatnonzero(paths.operator >= 0)
        self.node = base.copy()
        self.node[has] = forest.add(base[has], self._label_of("operator", events.name[paths.operator[has]], str))
        ops = self._trace.device_ops
        launch = launching_rows(self._trace)
        above = np.where(launch >= 0, self.node[np.maximum(launch, 0)], self._unmapped)
        if by == "kernel":
            above = np.full(len(ops), ROOT)
        self.of_op = forest.add(above, self._label_of("kernel", ops.name, short)) if len(ops) else above
        if by == "communication":
            self.of_op = np.full(len(ops), self.outside)
            rows = np.flatnonzero(ops.work == Work.COLLECTIVE)
            label = np.array([labels.add("communication", text) for text in _collectives(self._trace, rows)], np.int64)
            if len(rows):
                self.of_op[rows] = forest.add(np.full(len(rows), ROOT), label)

    def of_rows(self, rows: Ints) -> Ints:
        """Returns for each element of `rows` (an event row, UNMAPPED or NOTHING) its node."""
        special = np.where(rows == UNMAPPED, self._unmapped, self.outside)
        return np.where(rows >= 0, self.node[np.maximum(rows, 0)], special)

    @property
    def paths(self) -> Paths:
        """The paths that the leaves belong to."""
        return self._paths

    def _label_of(self, kind: str, names: Ints, text: Callable[[str], str]) -> Ints:
        distinct, which = np.unique(names, return_inverse=True)
        shown = [text(self._trace.names[name])[:MAX_TEXT] for name in distinct.tolist()]
        numbers = np.array([self._paths.labels.add(kind, each) for each in shown], np.int64)
        return numbers[which.reshape(-1)] if len(distinct) else np.empty(0, np.int64)


def _collectives(trace: Trace, rows: Ints) -> Iterator[str]:
    """Yields the operation, the process group and the size of each collective or message in `rows`, device operations.
    What is not recorded is left out."""
    ops, (has_operator, operator) = trace.device_ops, trace.calling_operators
    for row in rows.tolist():
        call, message = int(ops.call[row]), trace.messages[ops.message[row]]
        if ops.launched[row] and has_operator[call]:
            of_operator = trace.messages[trace.events.message[operator[call]]]
            message = of_operator if of_operator.operation else message
        name = message.operation or short(trace.names[ops.name[row]])
        group = message.description or message.group
        size = bytes_text(float(ops.bytes[row])) if ops.bytes[row] else ""
        yield ", ".join(filter(None, (name, f"group {group}" if group else "", size)))[:MAX_TEXT]


class _Charges:
    """Adds up the time, work and memory that belong to each node of the tree."""

    def __init__(self, leaves: _Leaves) -> None:
        self._leaves = leaves
        self.parent, self.label = leaves.paths.forest.columns()
        self.regimes = np.zeros((len(REGIMES), len(self.parent)))
        self.columns = {name: np.zeros(len(self.parent)) for name in COLUMNS}
        self.calls = np.zeros(len(self.parent))
        self.begin, self.end = np.zeros((2, len(self.parent)), np.int64)

    def add_pieces(self, pieces: Pieces) -> None:
        """Adds the time of each of `pieces` to its regime and node."""
        leaves, size = self._leaves, len(self.parent)
        busy = pieces.op >= 0
        node = leaves.of_rows(pieces.row)
        node[busy] = leaves.of_op[pieces.op[busy]]
        keys = pieces.regime * size + node
        self.regimes += np.bincount(keys, pieces.ns, len(REGIMES) * size).reshape(len(REGIMES), size)
        backward = (pieces.row >= 0) & leaves.paths.backward[np.maximum(pieces.row, 0)]
        self._add("backward", node[backward], pieces.ns[backward])

    def add_device(self, recording: Recording) -> None:
        """Adds the time and the bytes of the device operations that run in the window, and counts these operations."""
        ops, steps, leaves = recording.trace.device_ops, recording.steps, self._leaves
        rows = np.flatnonzero((ops.end > steps.begin) & (ops.start < steps.end))
        node = leaves.of_op[rows]
        length, bounds = ops.end[rows] - ops.start[rows], recording.kernel_bounds
        self._add("device", node, length)
        known = bounds.bound_by[rows] != BoundBy.UNKNOWN
        self._add("bounded", node, length * known)
        self._add("ideal", node, length * known * np.minimum(bounds.reached[rows], 1.0))
        self._add("bytes", node, ops.bytes[rows])
        self._count(node, ops.start[rows], ops.end[rows])

    def add_host(self, recording: Recording, host: HostRows) -> None:
        """Adds the time, waits and work of the host's events in the window."""
        trace, events, leaves, steps = recording.trace, recording.trace.events, self._leaves, recording.steps
        for own in host.own.values():
            begin, end = np.maximum(own.begin, steps.begin), np.minimum(own.end, steps.end)
            inside = end > begin
            self._add("host", leaves.of_rows(own.row[inside]), (end - begin)[inside])
        if recording.on_device:
            waits = recording.gaps.waits
            inside = recording.in_window(waits.over)
            calls = trace.rows(Kind.CALL)[waits.call[inside]]
            self._add("wait", leaves.of_rows(calls), waits.length[inside])
        work, moved = operator_work(trace, host)
        for name, values in (("flops", work), ("bytes", moved)):
            rows = np.flatnonzero(values)
            rows = rows[recording.in_window(events.start[rows])]
            self._add(name, leaves.of_rows(rows), values[rows])
        self._add_allocations(recording, host)
        self._count_rows(recording)

    def _count_rows(self, recording: Recording) -> None:
        """Counts the events that name nodes: the carriers of the paths, and the operators below them."""
        events, paths, leaves = recording.trace.events, self._leaves.paths, self._leaves
        named, operators = paths.carriers, np.flatnonzero(paths.operator == np.arange(len(paths.operator)))
        for rows, nodes in ((named, paths.node[named]), (operators, leaves.node[operators])):
            inside = recording.in_window(events.start[rows])
            self._count(nodes[inside], events.start[rows][inside], events.end[rows][inside])

    def _add_allocations(self, recording: Recording, host: HostRows) -> None:
        """Adds the bytes that were allocated on the device, or, in a run on the CPU, on the host."""
        trace, memory = recording.trace, recording.trace.memory
        types = (_CUDA, _HIP) if recording.on_device else (_CPU,)
        chosen = np.isin(memory.device_type, types) & (memory.size > 0) & recording.in_window(memory.time)
        if recording.on_device:
            chosen &= memory.device == trace.device_index
        time, thread, size = memory.time[chosen], memory.thread[chosen], memory.size[chosen]
        row = np.full(len(time), NOTHING)
        for number, own in host.own.items():
            mine = np.flatnonzero(thread == number)
            if len(mine) and len(own.begin):
                at = np.searchsorted(own.begin, time[mine], side="right") - 1
                running = (at >= 0) & (time[mine] < own.end[at])
                row[mine[running]] = own.row[at[running]]
        self._add("memory", self._leaves.of_rows(row), size)

    def _add(self, name: str, node: Ints, values: Ints | Floats) -> None:
        self.columns[name] += np.bincount(node, values, len(self.parent))

    def _count(self, node: Ints, begin: Ints, end: Ints) -> None:
        """Counts the events of each node, and stores the start and the end of the longest event of each node.

        `node`, `begin` and `end` (ns) have one element per event.
        """
        self.calls += np.bincount(node, minlength=len(self.parent))
        order = np.argsort(end - begin, kind="stable")
        order = order[(end - begin)[order] > (self.end - self.begin)[node[order]]]
        self.begin[node[order]], self.end[node[order]] = begin[order], end[order]

    def tree(self, recording: Recording, by: str) -> Tree:
        """Returns the finished tree. Nodes without any value are left out."""
        sums_with_children(self.parent, [*self.regimes, *self.columns.values()])
        used = self.regimes.any(axis=0) | np.any([column != 0 for column in self.columns.values()], axis=0)
        used[ROOT] = True
        rows = np.flatnonzero(used)
        number = np.cumsum(used) - 1
        labels = self._leaves.paths.labels.of()
        return Tree(
            by=by,
            parent=np.where(self.parent[rows] >= 0, number[self.parent[rows]], -1),
            kind=tuple(labels[label][0] for label in self.label[rows].tolist()),
            name=tuple(labels[label][1] for label in self.label[rows].tolist()),
            regimes=self.regimes[:, rows],
            columns={name: column[rows] for name, column in self.columns.items()},
            calls=self.calls[rows],
            begin=self.begin[rows],
            end=self.end[rows],
            window=recording.steps.end - recording.steps.begin,
            steps=len(recording.steps),
            window_begin=recording.steps.begin,
        )
