"""Makes messages of limited size from one tree, or from two aligned trees, with notes about missing data."""

import re
from dataclasses import replace

import numpy as np

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.base.units import share_text
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tree.host_rows import ROOT, Forest, Labels, depths
from tb_bottleneck.drilldown.tree.paths import has_marks
from tb_bottleneck.drilldown.tree.selection import REST, Selection, devices_of, largest, largest_change, selected_tree
from tb_bottleneck.drilldown.tree.tree import Tree
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Floats, Ints
from tb_bottleneck.trace.trace import Trace

# Parts of names that differ between two recordings of the same program: line numbers of functions, which change when
# the program is edited, and the keys of compiled graphs, which are hashes.
_CHANGING = re.compile(r"\(\d+\)(?=: )|(?<=CompiledFxGraph )\S+ ")


def aligned(a: Tree, b: Tree) -> tuple[Tree, Tree]:
    """Returns both trees with the same nodes in the same order. A node that is only in one tree is 0 in the other.

    Two nodes are the same if the names on the paths from the root are equal, apart from line numbers of functions.
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
    """Returns the kind and the name of each of the `size` common nodes. If both trees have a node, its name in the
    second tree is used. `sides` has pairs of a tree and an array with the number of the common node of each node."""
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


_MISSING = {
    "module": "No modules were recorded. Record with with_stack=True, or let the monitor mark them: "
    "Monitor(logdir, model=model, module_depth=4).",
    "line": "No function of the program was recorded. Record with with_stack=True.",
    "operator": "No operators were recorded.",
    "kernel": "No kernels were recorded.",
    "communication": "No collectives or messages between ranks were recorded.",
    "range": 'The program has no ranges. Mark its parts: with torch.profiler.record_function("name"): …',
}
# Smallest share of the window for which a note about unmapped time is written. A smaller one changes no conclusion.
_WORTH_MENTIONING = 0.02


def notes_of(trace: Trace, tree: Tree) -> tuple[str, ...]:
    """Returns sentences for the user about data that is missing in the tree, with the code that records it if known."""
    notes = []
    if tree.by not in tree.kind:
        notes.append(_MISSING[tree.by])
    elif tree.by == "module" and not has_marks(trace):
        notes.append("The profiler numbers the modules of each class; their names in the model are not recorded.")
    unmapped = sum(float(tree.exclusive[node]) for node, kind in enumerate(tree.kind) if kind == "unmapped")
    if unmapped > _WORTH_MENTIONING * tree.window:
        notes.append(
            f"{share_text(unmapped / tree.window)} of the time is unmapped: the recording does not show what launched "
            "the work, or what delayed it."
        )
    if tree.by in ("module", "line") and any("GraphLaunch" in name for name in tree.name):
        notes.append(
            "Kernels of a CUDA graph belong to the place that launches the graph, because torch records nothing inside."
        )
    if not len(trace.rows(Kind.CALL)) and len(trace.all_device_ops):
        notes.append("No runtime calls were recorded, so device work cannot be mapped to the host.")
    return tuple(notes)


MAX_NODES = 1_500
"""Largest number of nodes of a message, not counting nodes that stand for left-out nodes. About 600 kB of JSON."""


def tree_message(inspected: InspectedTrace, selection: Selection) -> pb.Tree:
    """Returns the message with the tree of the selected part of a recording. Raises NotFound as selected_tree does."""
    tree = selected_tree(inspected, selection)
    return _message(inspected, selection, largest(tree, MAX_NODES), tree)


def tree_messages(
    inspected: InspectedTrace, selection: Selection, other: InspectedTrace, of_other: Selection
) -> tuple[pb.Tree, pb.Tree]:
    """Returns the messages with the trees of two recordings, with the same nodes in the same order.

    The first tree is about the part `selection` of `inspected`, the second one about the part `of_other` of `other`.
    Only the nodes whose time per step differs most, and the nodes above them, are in the messages.
    """
    tree, against = aligned(selected_tree(inspected, selection), selected_tree(other, of_other))
    part, of_against = largest_change(tree, against, MAX_NODES)
    return _message(inspected, selection, part, tree), _message(other, of_other, of_against, against)


def _message(inspected: InspectedTrace, selection: Selection, part: Tree, whole: Tree) -> pb.Tree:
    kinds = sorted(set(part.kind))
    recorded = inspected.recording
    message = pb.Tree(
        by=part.by,
        window_ns=part.window,
        steps=part.steps,
        steps_recorded=len(recorded.steps) if recorded is not None else 0,
        parent=part.parent.tolist(),
        kinds=kinds,
        kind=[kinds.index(kind) for kind in part.kind],
        name=part.name,
        device_ns=part.columns["device"].tolist(),
        host_ns=part.columns["host"].tolist(),
        wait_ns=part.columns["wait"].tolist(),
        backward_ns=part.columns["backward"].tolist(),
        moved_bytes=part.columns["bytes"].tolist(),
        flops=part.columns["flops"].tolist(),
        allocated_bytes=part.columns["memory"].tolist(),
        bounded_ns=part.columns["bounded"].tolist(),
        ideal_ns=part.columns["ideal"].tolist(),
        calls=part.calls.astype(int).tolist(),
        begin_ns=part.begin.tolist(),
        end_ns=part.end.tolist(),
        device=inspected.trace.device_index if selection.device is None else selection.device,
        notes=notes_of(inspected.trace, whole),
        nodes_left_out=len(whole.parent) - sum(kind != REST for kind in part.kind),
    )
    for regime, ns in zip(REGIMES, part.regimes, strict=True):
        if ns.any():
            message.regimes.add(regime=regime, title=regime.label, ns=ns.tolist())
    for device in devices_of(inspected):
        message.devices.add(index=device.index, name=device.name, total_ns=device.total)
    return message
