"""Writes a drilldown tree, or the difference of two, as text and as JSON."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.base.units import NS_PER_S, bytes_text, duration_text, one_line, rate_text, share_text
from tb_bottleneck.drilldown.tree.selection import REST, values_of
from tb_bottleneck.drilldown.tree.tree import COLUMNS, Tree
from tb_bottleneck.report.figure_text import count_text
from tb_bottleneck.text.document import Table
from tb_bottleneck.text.terminal import Layout, shortened
from tb_bottleneck.trace.table import Floats, Ints

_NOT_SORTED = ("backward", "bounded", "ideal")
SORTS = ("time", *(name for name in COLUMNS if name not in _NOT_SORTED), "calls")
"""The names of the values by which rows can be sorted (see selection.values_of)."""

_HEADERS = ("Time", "Share", "Own", "Device", "Host", "Calls")
_DELTA_HEADERS = ("Before", "After", "Change", "Own change")
_ROOFLINE_HEADERS = {"operator": ("FLOP/B", "Roofline"), "kernel": ("Roofline",), "communication": ("Rate",)}
_INDENT = "  "


def _operations_text(count: float) -> str:
    return f"{count_text(count / 1e9)} GFLOP"


_MORE: dict[str, Callable[[float], str]] = {"bytes": bytes_text, "memory": bytes_text, "flops": _operations_text}


def tree_text(tree: Tree, layout: Layout, sort: str = "time", depth: int | None = None) -> str:
    """Returns the tree as text, one line per node, down to the level `depth`. Times are per step.

    The children of a node are in descending order of the column `sort`, one of SORTS.
    """
    order, level = _rows(tree, values_of(tree, sort), depth)
    own, steps = tree.own(tree.exclusive), max(tree.steps, 1)
    extra = sort if sort in (*_MORE, "wait") else None
    header = [*_HEADERS, *([extra.capitalize()] if extra else []), *_ROOFLINE_HEADERS.get(tree.by, ())]
    rows = []
    for node in order.tolist():
        cells = [
            duration_text(tree.exclusive[node] / steps),
            share_text(tree.exclusive[node] / max(tree.window, 1)),
            duration_text(own[node] / steps),
            duration_text(tree.columns["device"][node] / steps),
            duration_text(tree.columns["host"][node] / steps),
            count_text(tree.calls[node] / steps) if tree.calls[node] else "",
        ]
        if extra:
            cells.append(_MORE.get(extra, duration_text)(values_of(tree, extra)[node] / steps))
        rows.append([*cells, *(_roofline(tree, node) if tree.by in _ROOFLINE_HEADERS else ())])
    return _text(tree, layout, header, rows, order, level)


def _text(
    tree: Tree, layout: Layout, header: Sequence[str], rows: Sequence[list[str]], order: Ints, level: Sequence[int]
) -> str:
    """Returns a table of `rows`, one per node in `order`, with the indented names of the nodes in the last column."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    room = layout.width - sum(widths) - 2 * len(widths)
    for node, row in zip(order.tolist(), rows, strict=True):
        row.append(_name(tree, node, level[node], room))
    return layout.text([Table(">" * len(header) + "<", rows, header=(*header, _where(tree)), indent=0)])


def _roofline(tree: Tree, node: int) -> list[str]:
    """Returns the cells under _ROOFLINE_HEADERS: FLOP per byte and the share of the roofline of an operator or kernel,
    or the rate of a communication, which includes the wait for other ranks. A cell is empty if it is not known."""
    column = {name: float(values[node]) for name, values in tree.columns.items()}
    if tree.by == "communication":
        known = column["bytes"] and column["device"]
        return [rate_text(column["bytes"] / column["device"] * NS_PER_S) if known else ""]
    reached = share_text(column["ideal"] / column["bounded"]) if column["bounded"] else ""
    if tree.by == "kernel":
        return [reached]
    return [f"{column['flops'] / column['bytes']:.3g}" if column["flops"] and column["bytes"] else "", reached]


def grouping_text(tree: Tree) -> str:
    """Returns what a node of the tree stands for, such as "module". The line of a function is that of its `def`."""
    return "function and line" if tree.by == "line" else tree.by


def _where(tree: Tree) -> str:
    return "Function and line" if tree.by == "line" else "Where"


def difference_text(a: Tree, b: Tree, layout: Layout, depth: int | None = None) -> str:
    """Returns the difference of two aligned trees as text, from `a` (before) to `b` (after), down to the level `depth`.

    The children of a node are in descending order of the absolute change of time. Times are per step.
    """
    before, after = a.exclusive / max(a.steps, 1), b.exclusive / max(b.steps, 1)
    order, level = _rows(a, np.abs(after - before), depth)
    own = b.own(after) - a.own(before)
    rows = [
        [
            duration_text(before[node]),
            duration_text(after[node]),
            _signed(after[node] - before[node]),
            _signed(own[node]),
        ]
        for node in order.tolist()
    ]
    return _text(a, layout, _DELTA_HEADERS, rows, order, level)


def tree_dict(tree: Tree) -> dict[str, Any]:
    """Returns the tree as nested dicts for JSON. Times are sums over all steps of the tree.

    `own_ns` is the time of a node without the nodes below it.
    """
    below: list[list[int]] = [[] for _ in tree.parent]
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            below[parent].append(node)
    own = tree.own(tree.exclusive)
    objects = [
        {
            "name": tree.name[node] or "all",
            "kind": tree.kind[node],
            "time_ns": float(tree.exclusive[node]),
            "share": float(tree.exclusive[node]) / max(tree.window, 1),
            "own_ns": float(own[node]),
            "calls": int(tree.calls[node]),
            "regimes": {
                regime: float(ns) for regime, ns in zip(REGIMES, tree.regimes[:, node].tolist(), strict=True) if ns
            },
            **{_JSON_NAME.get(name, name): float(column[node]) for name, column in tree.columns.items()},
        }
        for node in range(len(tree.parent))
    ]
    for node in range(len(objects) - 1, -1, -1):
        objects[node]["children"] = [
            objects[child] for child in sorted(below[node], key=lambda it: -tree.exclusive[it])
        ]
    return objects[0]


_JSON_NAME = {
    **{name: f"{name}_ns" for name in ("device", "host", "wait", "backward", "bounded", "ideal")},
    "bytes": "moved_bytes",
    "memory": "allocated_bytes",
}


def _rows(tree: Tree, values: Floats, depth: int | None) -> tuple[Ints, list[int]]:
    """Returns the nodes in the order in which they are shown, and the level of each node. `depth` is the last level.

    Children are in descending order of `values`. A node that stands for left-out nodes comes last. If it is the only
    child, it is left out, because its line would repeat the line of the parent.
    """
    below: list[list[int]] = [[] for _ in tree.parent]
    level = [0] * len(tree.parent)
    for node, parent in enumerate(tree.parent.tolist()[1:], 1):
        level[node] = level[parent] + 1
        if tree.kind[node] != REST or below[parent]:
            below[parent].append(node)
    order, open_nodes = [], [0]
    while open_nodes:
        node = open_nodes.pop()
        order.append(node)
        if depth is None or level[node] < depth:
            open_nodes += sorted(below[node], key=lambda child: (tree.kind[child] != REST, values[child]))
    return np.array(order), level


def _name(tree: Tree, node: int, level: int, width: int) -> str:
    name = one_line(tree.name[node]) or "all"
    if tree.kind[node] == REST:
        name = f"({name})"
    indent = _INDENT * min(level, 12)
    return indent + shortened(name, max(width - len(indent), 20))


def _signed(ns: float) -> str:
    return f"{'+' if ns >= 0 else '-'}{duration_text(abs(ns))}"
