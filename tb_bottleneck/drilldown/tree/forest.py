"""Paths of labels, interned: equal paths are one node. A node's parent always has a smaller number."""

from collections.abc import Sequence

import numpy as np

from tb_bottleneck.trace.table import Ints

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
    """Nodes below one root. `add` must get the children of a node with the same label in one call."""

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
