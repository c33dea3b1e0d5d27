"""Two trees on the same nodes, to show what differs."""

import re
from dataclasses import replace

import numpy as np

from tb_bottleneck.drilldown.tree.forest import ROOT, Forest, Labels, depths
from tb_bottleneck.drilldown.tree.tree import Tree
from tb_bottleneck.trace.table import Floats, Ints

# Lines of a function move when the program is edited; the keys of compiled graphs are hashes.
_CHANGING = re.compile(r"\(\d+\)(?=: )|(?<=CompiledFxGraph )\S+ ")


def aligned(a: Tree, b: Tree) -> tuple[Tree, Tree]:
    """Returns both trees with the nodes of both: node i of one is node i of the other, with zeros where it is missing.

    Nodes are the same if their paths have the same names, without the line numbers of functions.
    """
    labels = Labels()
    forest = Forest(labels.add("root", ""))
    label = [np.array([_label(labels, tree, node) for node in range(len(tree.parent))], np.int64) for tree in (a, b)]
    depth, node = [depths(a.parent), depths(b.parent)], [np.full(len(tree.parent), ROOT) for tree in (a, b)]
    for level in range(1, max(int(each.max()) for each in depth) + 1):
        rows = [np.flatnonzero(each == level) for each in depth]
        above = [node[side][tree.parent[rows[side]]] for side, tree in enumerate((a, b))]
        found = forest.add(np.concatenate(above), np.concatenate([label[side][rows[side]] for side in (0, 1)]))
        node[0][rows[0]], node[1][rows[1]] = np.split(found, [len(rows[0])])
    parent, _ = forest.columns()
    names = _names(len(parent), ((a, node[0]), (b, node[1])))
    return _on(a, node[0], parent, names), _on(b, node[1], parent, names)


def _label(labels: Labels, tree: Tree, node: int) -> int:
    return labels.add(tree.kind[node], _CHANGING.sub("", tree.name[node]))


def _names(size: int, sides: tuple[tuple[Tree, Ints], ...]) -> list[tuple[str, str]]:
    """Returns kind and name of each node; those of the second tree where both have it."""
    names = [("root", "")] * size
    for tree, node in sides:
        for at, kind, name in zip(node.tolist(), tree.kind, tree.name, strict=True):
            names[at] = (kind, name)
    return names


def _on(tree: Tree, node: Ints, parent: Ints, names: list[tuple[str, str]]) -> Tree:
    def spread(column: Floats) -> Floats:
        return np.bincount(node, column, len(parent)).astype(np.float64)

    begin, end = np.zeros((2, len(parent)), np.int64)
    begin[node], end[node] = tree.begin, tree.end
    return replace(
        tree,
        parent=parent,
        kind=tuple(kind for kind, _ in names),
        name=tuple(name for _, name in names),
        regimes=np.stack([spread(column) for column in tree.regimes]),
        columns={name: spread(column) for name, column in tree.columns.items()},
        calls=spread(tree.calls),
        begin=begin,
        end=end,
    )
