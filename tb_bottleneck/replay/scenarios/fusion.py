"""Compiles consecutive pointwise operators into one kernel, which reads and writes memory once.

Changes: of each chain of pointwise kernels on one stream with equal grid sizes only the longest remains, and the
launches of the others are removed.
Assumes: equal grid sizes mean tensors of equal size, and consecutive kernels belong together.
Bounds: low: half of the time of the removed kernels is saved. High: all of it, as expected.
"""

import re

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools

# PyTorch's own pointwise kernels, one operator each.
POINTWISE = re.compile(r"elementwise_kernel")


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Merges the chains."""
    items = graph.items
    factor = np.where(_merged(graph), 0.5 if estimate is Estimate.LOW else 0.0, 1.0)
    return graph.with_items(
        length=scale_column(items.length, factor),
        pause=scale_column(items.pause, factor),
        cost=scale_column(items.cost, factor),
        gap=graph.gap_scaled(Activity.DISPATCH, factor),
    )


def _merged(graph: ModifiedGraph) -> Bools:
    """Returns the items that are merged into another: all but the longest kernel of each chain.

    A chain consists of pointwise kernels that are neighbours on a stream and have equal grid sizes.
    """
    items, ops, trace = graph.items, graph.base.ops, graph.base.recording.trace
    merged = np.zeros(len(items), np.bool_)
    rows = np.flatnonzero(items.op >= 0)
    rows = rows[np.argsort(items.stream[rows], kind="stable")]
    if not len(rows):
        return merged
    op, stream = items.op[rows], items.stream[rows]
    pointwise = (
        name_matches(trace.names, ops.name[op], lambda name: bool(POINTWISE.search(name)))
        & (ops.work[op] == Work.STREAMING)
        & (ops.blocks[op] > 0)
    )
    same = pointwise[1:] & pointwise[:-1] & (stream[1:] == stream[:-1]) & (ops.blocks[op][1:] == ops.blocks[op][:-1])
    chain = np.cumsum(np.append(True, ~same)) - 1
    # The longest kernel of each chain comes first and remains; a single kernel is a chain of one.
    order = np.lexsort((-items.length[rows], chain))
    stays = np.append(True, np.diff(chain[order]) != 0)
    merged[rows[order[~stays]]] = True
    return merged


SCENARIO = Scenario("fusing", apply)
