"""The host's rows of a trace for a tree: labels, what encloses each row, when it runs itself, and its work."""

from collections.abc import Sequence

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.order_statistics import distinct_rows
from tb_bottleneck.roofline.bytes_moved import bytes_moved
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.trace.forward_links import is_autograd_node
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost, nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.steps import step_marks
from tb_bottleneck.trace.table import Bools, Floats, Ints, by_thread
from tb_bottleneck.trace.trace import Trace

ROOT = 0


class Labels:
    """Texts with the kind of thing that they name, interned."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], int] = {}

    def add(self, kind: str, text: str) -> int:
        """Returns the number of a label."""
        return self._rows.setdefault((kind, text), len(self._rows))

    def of(self) -> list[tuple[str, str]]:
        """Returns kind and text of all labels, in order of their numbers."""
        return list(self._rows)


class Forest:
    """Nodes below one root. `add` must get the children of a node with the same label in one call.

    Equal paths of labels are one node. A node's parent always has a smaller number.
    """

    def __init__(self, root: int) -> None:
        self._parents: list[Ints] = [np.array([-1])]
        self._labels: list[Ints] = [np.array([root])]
        self._size = 1

    def add(self, parents: Ints, labels: Ints) -> Ints:
        """Returns the node below each parent with this label; equal pairs are one node."""
        pairs, node = np.unique(parents << 32 | labels, return_inverse=True)
        self._parents.append(pairs >> 32)
        self._labels.append(pairs & 0xFFFFFFFF)
        self._size += len(pairs)
        return np.asarray(self._size - len(pairs) + node.reshape(-1), np.int64)

    def columns(self) -> tuple[Ints, Ints]:
        """Returns the parent (-1 for the root) and the label of each node."""
        return np.concatenate(self._parents), np.concatenate(self._labels)


def depths(up: Ints) -> Ints:
    """Returns the number of rows above each row; `up` is the row above, or -1. Pointers double their reach."""
    depth, above = (up >= 0).astype(np.int64), up.copy()
    while (above >= 0).any():
        has = np.flatnonzero(above >= 0)
        depth[has] += depth[above[has]]
        above[has] = above[above[has]]
    return depth


def sums_with_children(parent: Ints, columns: Sequence[np.ndarray]) -> None:
    """Adds the values of all nodes to the nodes above them, in place."""
    depth = depths(parent)
    order = np.argsort(-depth, kind="stable")
    cuts = np.flatnonzero(np.diff(depth[order])) + 1
    for level in np.split(order, cuts):
        below = level[parent[level] >= 0]
        for column in columns:
            np.add.at(column, parent[below], column[below])


HOST_KINDS = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.CALL)


class OwnTime(Record, frozen=True, eq=False):
    """Sorted, disjoint time spans, in ns, with the row of the events that runs in each without a nested row."""

    begin: Ints
    end: Ints
    row: Ints


NO_TIME = OwnTime(*(np.empty(0, np.int64) for _ in range(3)))


class HostRows(Record, frozen=True, eq=False):
    """`parent` has the enclosing row for each event, or -1; `own` the own time of the rows of each thread."""

    parent: Ints
    own: dict[int, OwnTime]

    def nearest(self, chosen: Bools) -> Ints:
        """Returns the nearest chosen row for each event: itself, or one that encloses it; -1 if there is none."""
        none = len(chosen)
        around = np.where(self.parent >= 0, self.parent, none)
        near = np.append(np.where(chosen, np.arange(none), around), none)
        while True:
            further = near[near]
            if np.array_equal(further, near):
                return np.where(near[:-1] < none, near[:-1], -1)
            near = further


def host_rows_of(trace: Trace, main_thread: int | None) -> HostRows:
    """Returns the nesting, without the marks of the steps. `main_thread` is a row of the trace's threads.

    On a thread of autograd, the outermost rows are enclosed by what the main thread runs meanwhile: it waits in the
    call that started the backward pass.
    """
    events = trace.events
    calls = np.setdiff1d(trace.rows(*HOST_KINDS), step_marks(trace), assume_unique=True)
    rows_of = by_thread(calls, events.thread)
    parent, own = np.full(len(events), -1, np.int64), {}
    for thread, rows in rows_of.items():
        nesting = nest(events.start[rows], events.end[rows])
        nested = np.flatnonzero(nesting.parent != np.arange(len(rows)))
        parent[rows[nested]] = rows[nesting.parent[nested]]
        begin, end, owner = nesting.self_spans(np.ones(len(rows), np.bool_))
        own[thread] = OwnTime(begin, end, rows[owner])
    main = rows_of.get(-1 if main_thread is None else main_thread)
    if main is not None:
        for thread in _autograd_threads(trace):
            outermost = rows_of[thread][parent[rows_of[thread]] < 0]
            inside, row = innermost(events.start[main], events.end[main], events.start[outermost])
            if thread != main_thread:
                parent[outermost[inside]] = main[row[inside]]
    return HostRows(parent, own)


def _autograd_threads(trace: Trace) -> list[int]:
    return list(by_thread(np.flatnonzero(is_autograd_node(trace)), trace.events.thread))


def operator_work(trace: Trace, host: HostRows) -> tuple[Floats, Floats]:
    """Returns the floating-point operations and the minimum bytes of each row of the events; 0 if they are not known.

    They follow from the recorded shapes. Of nested operators that describe the same work (linear, addmm), only the
    innermost one counts.
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
