"""Data about the host's events for a tree: for each event the enclosing event, the own time (without nested events),
and the work. Also the classes for labels and nodes of a tree."""

from collections.abc import Sequence
from math import prod

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.measure import Record
from tb_bottleneck.roofline.bytes_moved import bytes_moved
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.trace.forward_links import is_autograd_node
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost, nest
from tb_bottleneck.trace.operands import Shape, operands_of
from tb_bottleneck.trace.steps import step_marks
from tb_bottleneck.trace.table import Bools, Floats, Ints, by_thread
from tb_bottleneck.trace.trace import Trace

ROOT = 0


class Labels:
    """Assigns numbers to labels. A label is a pair of a kind, such as "module", and a text. It names nodes of a
    tree."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], int] = {}

    def add(self, kind: str, text: str) -> int:
        """Returns the number of the label. Equal labels have the same number."""
        return self._rows.setdefault((kind, text), len(self._rows))

    def of(self) -> list[tuple[str, str]]:
        """Returns the pairs (kind, text) of all labels, in the order of their numbers."""
        return list(self._rows)


class Forest:
    """The nodes of a tree, numbered from 0 (the root). The parent of a node always has a smaller number.

    There is one node per parent and label. For this, children with the same parent and the same label must be added in
    one call of `add`.
    """

    def __init__(self, root: int) -> None:
        self._parents: list[Ints] = [np.array([-1])]
        self._labels: list[Ints] = [np.array([root])]
        self._size = 1

    def add(self, parents: Ints, labels: Ints) -> Ints:
        """Adds for each i a node with the label labels[i] below the node parents[i]. Returns the number of each node.

        Equal pairs of parent and label share one node.
        """
        pairs, node = np.unique(parents << 32 | labels, return_inverse=True)
        self._parents.append(pairs >> 32)
        self._labels.append(pairs & 0xFFFFFFFF)
        self._size += len(pairs)
        return np.asarray(self._size - len(pairs) + node.reshape(-1), np.int64)

    def columns(self) -> tuple[Ints, Ints]:
        """Returns the parent (-1 for the root) and the label of each node."""
        return np.concatenate(self._parents), np.concatenate(self._labels)


def depths(up: Ints) -> Ints:
    """Returns for each row the number of rows above it. up[i] is the row directly above row i, or -1."""
    depth, above = (up >= 0).astype(np.int64), up.copy()
    while (above >= 0).any():
        has = np.flatnonzero(above >= 0)
        depth[has] += depth[above[has]]
        above[has] = above[above[has]]
    return depth


def sums_with_children(parent: Ints, columns: Sequence[np.ndarray]) -> None:
    """Adds the values of all nodes below a node to the value of this node, for each node and each of `columns`.

    Modifies `columns`. `parent` has the parent of each node, or -1.
    """
    depth = depths(parent)
    order = np.argsort(-depth, kind="stable")
    cuts = np.flatnonzero(np.diff(depth[order])) + 1
    for level in np.split(order, cuts):
        below = level[parent[level] >= 0]
        for column in columns:
            np.add.at(column, parent[below], column[below])


HOST_KINDS = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.CALL)


class OwnTime(Record, frozen=True, eq=False):
    """The time of one thread in which events run, as sorted, disjoint intervals in ns. `row` has for each interval the
    innermost event that runs in it. All intervals of an event together are its own time, without nested events."""

    begin: Ints
    end: Ints
    row: Ints


NO_TIME = OwnTime(*(np.empty(0, np.int64) for _ in range(3)))


class HostRows(Record, frozen=True, eq=False):
    """The nesting of the host's events. `parent` has the enclosing event of each event, or -1. `own` maps each thread
    to the own time of its events."""

    parent: Ints
    own: dict[int, OwnTime]

    def nearest(self, chosen: Bools) -> Ints:
        """Returns for each event the innermost event in the mask `chosen` that is or encloses the event, or -1."""
        none = len(chosen)
        around = np.where(self.parent >= 0, self.parent, none)
        near = np.append(np.where(chosen, np.arange(none), around), none)
        while True:
            further = near[near]
            if np.array_equal(further, near):
                return np.where(near[:-1] < none, near[:-1], -1)
            near = further


def host_rows_of(trace: Trace, main_thread: int | None) -> HostRows:
    """Returns the nesting of the host's events, without step marks. `main_thread` is a row of the trace's threads.

    The outermost events on a thread of autograd count as enclosed by what the main thread runs at that time, because
    the main thread waits in the call that started the backward pass.
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
    """Returns for each event the floating-point operations and the minimum bytes moved; 0 if not known.

    These values follow from the recorded shapes. If nested operators describe the same work (linear, addmm), only the
    innermost operator has the values.
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
    """Returns the rows of the events in the mask `counted` that enclose another event in this mask."""
    near, rows = host.nearest(counted), np.flatnonzero(counted)
    above = host.parent[rows]
    return near[above[above >= 0]][near[above[above >= 0]] >= 0]


def _work(trace: Trace, name: int, signature: int) -> tuple[float, float]:
    operands = operands_of(trace.signatures[signature])
    if operands is None:
        return 0.0, 0.0
    operator = trace.names[name]
    moved = bytes_moved(operator, operands.dims, operands.types, operands.concrete)
    work = flops(operator, operands.dims, operands.concrete)
    if work is None and moved is not None and operator.startswith("aten::"):
        work = max((elements(dims) for dims in operands.dims), default=0)  # pointwise or a reduction: one per element
    return float(work or 0), float(moved or 0)


def elements(dims: Shape) -> int:
    """Returns the number of elements of the tensor with the shape `dims`, or of all tensors in a list; 0 for a
    scalar."""
    lists = [size for size in dims if isinstance(size, tuple)]
    if lists:
        return sum(elements(each) for each in lists)
    return prod(size for size in dims if isinstance(size, int)) if dims else 0
