"""Selects what a tree shows: the device, the range of steps, and the largest nodes or the nodes that match a text."""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.base.measure import Record
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tree.tree import Tree, tree_of
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows


@dataclass(frozen=True)
class Selection:
    """The part of a recording that a tree is about.

    `by` and `merged` are as in paths.paths_of. If `device` is None, the tree is about the device of the report. Steps
    count from 1, and `last_step` is included. If a step is None, the range begins with the first or ends with the last
    step of the report.
    """

    by: str = "module"
    device: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    merged: bool = False


class Device(Record, frozen=True):
    """A device that the process used. `total` is the sum of the lengths of all operations on the device, in ns."""

    index: int
    name: str
    total: int


def devices_of(inspected: InspectedTrace) -> list[Device]:
    """Returns the devices with recorded operations, in the order of their indices."""
    trace, devices = inspected.trace, []
    ops = trace.all_device_ops
    for index in distinct_values(ops.device).tolist():
        rows = ops.device == index
        facts = trace.header.device(index)
        devices.append(Device(index, facts.name if facts else "", int((ops.end - ops.start)[rows].sum())))
    return devices


def selected_tree(inspected: InspectedTrace, selection: Selection) -> Tree:
    """Returns the tree of the selected part of a recording.

    Raises:
        NotFound: the recording is empty, or does not contain the device or the steps.
    """
    recording = recording_of(inspected, selection)
    return tree_of(recording, inspected.host_rows, selection.by, selection.merged)


def recording_of(inspected: InspectedTrace, selection: Selection) -> Recording:
    """Returns the recording of the selected device, with the selected steps as its window.

    Raises NotFound as `selected_tree` does.
    """
    trace = inspected.trace
    if selection.device is not None and selection.device != trace.device_index:
        indices = [device.index for device in devices_of(inspected)]
        if selection.device not in indices:
            known = ", ".join(map(str, indices)) or "none"
            raise NotFound(f"device {selection.device} did no recorded work; devices with work: {known}")
        inspected = InspectedTrace(replace(inspected.loaded, chosen_device=selection.device))
    recording = inspected.recording
    if recording is None:
        raise NotFound("nothing ran in this recording, so there is no time to show")
    return replace(recording, steps=_steps(recording.steps, selection.first_step, selection.last_step))


def _steps(steps: Steps, first: int | None, last: int | None) -> Steps:
    count = len(steps)
    begin, end = 1 if first is None else first, count if last is None else last
    if not 1 <= begin <= end <= count:
        raise NotFound(f"steps {begin} to {end} are not in the window: it has the steps 1 to {count}")
    return Steps(steps.basis, np.array(steps.edges[begin - 1 : end + 1]), np.array(steps.host[begin - 1 : end + 1]))


REST = "rest"
"""The kind of the nodes that stand for left out nodes."""


def largest(tree: Tree, limit: int, by: str | None = None) -> Tree:
    """Returns the tree with its `limit` largest nodes. Children that are left out are replaced by one node per parent.

    The size of a node is its fraction of the root's value in the column `by` (see `values_of`). If `by` is None, it is
    the largest of the fractions in all columns.
    """
    columns = [values_of(tree, by)] if by else [tree.exclusive, *tree.columns.values()]
    shares = [np.abs(column) / max(abs(float(column[0])), 1.0) for column in columns]
    rank = _with_below(tree.parent, np.max(shares, axis=0))
    return with_rest(tree, _first(rank, limit))


def largest_change(a: Tree, b: Tree, limit: int) -> tuple[Tree, Tree]:
    """Returns the aligned trees `a` and `b` with the `limit` nodes whose time per step differs most, where a node
    counts with the largest difference of itself and all nodes below it."""
    change = _with_below(a.parent, np.abs(b.exclusive / max(b.steps, 1) - a.exclusive / max(a.steps, 1)))
    kept = _first(change, limit)
    return with_rest(a, kept), with_rest(b, kept)


def values_of(tree: Tree, column: str) -> Floats:
    """Returns a column by its name: one of tree.COLUMNS, "calls", or "time" for the sum of the time of all regimes."""
    if column == "calls":
        return tree.calls
    return tree.exclusive if column == "time" else tree.columns[column]


def matching(tree: Tree, text: str) -> tuple[Tree, Rows]:
    """Returns the tree of the nodes whose names contain `text` (upper or lower case), and of the nodes above and below.

    Also returns the outermost matching nodes, as nodes of the returned tree.
    """
    found = np.array([text.lower() in name.lower() for name in tree.name], np.bool_)
    inside = found.copy()  # or below a node that matches: parents have smaller numbers
    kept = found.copy()
    for node in range(1, len(found)):
        inside[node] |= inside[tree.parent[node]]
    for node in range(len(found) - 1, 0, -1):
        kept[tree.parent[node]] |= kept[node]
    kept |= inside
    kept[0] = True
    outermost = found & ~np.append(False, inside[tree.parent[1:]])
    return taken(tree, np.flatnonzero(kept)), (np.cumsum(kept) - 1)[outermost]


def with_rest(tree: Tree, kept: Bools) -> Tree:
    """Returns the tree of the nodes in the mask `kept`. If children of a node are left out, one new child with the sums
    of their values replaces these children."""
    rows = np.flatnonzero(kept)
    lost = np.flatnonzero(~kept & np.append(False, kept[tree.parent[1:]]))
    if not len(lost):
        return tree
    below = np.ones(len(kept))  # nodes that each left-out child stands for
    for node in range(len(kept) - 1, 0, -1):
        if not kept[node]:
            below[tree.parent[node]] += below[node]
    parents, group = np.unique(tree.parent[lost], return_inverse=True)
    group = group.reshape(-1)
    numbers = np.bincount(group, below[lost], len(parents))
    part = taken(tree, rows)
    number = np.cumsum(kept) - 1

    def extended(column: Floats) -> Floats:
        return np.append(column[rows], np.bincount(group, column[lost], len(parents)))

    return replace(
        part,
        parent=np.append(part.parent, number[parents]),
        kind=(*part.kind, *[REST] * len(parents)),
        name=(*part.name, *(f"{count:.0f} more" for count in numbers.tolist())),
        regimes=np.stack([extended(column) for column in tree.regimes]),
        columns={name: extended(column) for name, column in tree.columns.items()},
        calls=extended(tree.calls),
        begin=np.append(part.begin, np.zeros(len(parents), np.int64)),
        end=np.append(part.end, np.zeros(len(parents), np.int64)),
    )


def taken(tree: Tree, rows: Rows) -> Tree:
    """Returns the tree of the nodes `rows`. For each of these nodes, `rows` must also contain its parent."""
    number = np.full(len(tree.parent), -1)
    number[rows] = np.arange(len(rows))
    return replace(
        tree,
        parent=np.where(tree.parent[rows] >= 0, number[tree.parent[rows]], -1),
        kind=tuple(tree.kind[row] for row in rows.tolist()),
        name=tuple(tree.name[row] for row in rows.tolist()),
        regimes=tree.regimes[:, rows],
        columns={name: column[rows] for name, column in tree.columns.items()},
        calls=tree.calls[rows],
        begin=tree.begin[rows],
        end=tree.end[rows],
    )


def _with_below(parent: Ints, values: Floats) -> Floats:
    """Returns for each node the largest value of the node and all nodes below it."""
    largest_below = values.copy()
    for node in range(len(parent) - 1, 0, -1):
        largest_below[parent[node]] = max(largest_below[parent[node]], largest_below[node])
    return largest_below


def _first(rank: Floats, limit: int) -> Bools:
    """Returns a mask of the root and the `limit` nodes with the highest rank. If ranks are equal, nodes with smaller
    numbers come first, so that parents come before children."""
    kept = np.zeros(len(rank), np.bool_)
    kept[np.argsort(-rank, kind="stable")[:limit]] = True
    kept[0] = True
    return kept
