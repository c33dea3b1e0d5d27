"""A tree as a message of bounded size."""

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tree.alignment import aligned
from tb_bottleneck.drilldown.tree.notes import notes_of
from tb_bottleneck.drilldown.tree.prune import REST, largest, largest_change
from tb_bottleneck.drilldown.tree.selection import Selection, devices_of, selected_tree
from tb_bottleneck.drilldown.tree.tree import Tree
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.schema import evidence_pb2 as pb

MAX_NODES = 1_500
"""Nodes of a message besides those that stand for others: with these, at most about 600 kB of JSON."""


def tree_message(inspected: InspectedTrace, selection: Selection) -> pb.Tree:
    """Returns the selected part of a recording. Raises NotFound as `selected_tree`."""
    tree = selected_tree(inspected, selection)
    return _message(inspected, selection, largest(tree, MAX_NODES), tree)


def tree_messages(
    inspected: InspectedTrace, selection: Selection, other: InspectedTrace, of_other: Selection
) -> tuple[pb.Tree, pb.Tree]:
    """Returns the selected parts of two recordings on the same nodes: those with the largest values or differences."""
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
