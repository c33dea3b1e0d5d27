"""Compiles consecutive pointwise operators, reductions, copies, casts and normalisations into one kernel.

Changes: of each chain of such kernels on one stream the longest remains, and MERGED_REMAINING of the time of the
others. Their launches are removed. A chain ends at every other operation of the stream: a product, a copy to or from
the host, a kernel of a library.
Assumes: consecutive kernels work on the same tensors. The optimizer is not compiled.
Bounds: low: half of that is saved. High: chains are merged into the products next to them, so that INTO_PRODUCTS of
their time remains.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.knowledge.catalogue import first_match, fusible_patterns
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools, Ints

# Segment Anything 2 with its prompt encoder and mask decoder compiled, on an A100 (cpuhrsch/segment-anything-2, 9418727
# to 0fd1906): of 302 ms in such kernels, 100 ms in the longest ones of their chains, 122 ms remained, fused or not.
MERGED_REMAINING = 0.1
# With max-autotune, templates of products take over their neighbours, with what the products read and write anyway. The
# same model (69e4515 to 96f2a0c): of 388 ms in kernels limited by memory, 69 ms remained besides Triton kernels.
INTO_PRODUCTS = 0.2
NOT_FUSED = "no"


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Merges the chains."""
    items, chain = graph.items, _chains(graph)
    merged = (chain >= 0) & ~_longest(items.length, chain)
    length, launches = np.where(merged, MERGED_REMAINING, 1.0), np.where(merged, 0.0, 1.0)
    if estimate is Estimate.LOW:
        length, launches = (1 + length) / 2, (1 + launches) / 2
    elif estimate is Estimate.HIGH:
        length = np.where(chain >= 0, np.minimum(length, INTO_PRODUCTS), 1.0)
    return graph.with_items(
        length=scale_column(items.length, length),
        pause=scale_column(items.pause, launches),
        cost=scale_column(items.cost, launches),
        gap=graph.gap_scaled(Activity.DISPATCH, launches),
    )


def _chains(graph: ModifiedGraph) -> Ints:
    """Returns the number of each item's chain; -1 for items that are in none."""
    items, ops, trace = graph.items, graph.base.ops, graph.base.recording.trace
    chains = np.full(len(items), -1, np.int64)
    rows = np.flatnonzero(items.op >= 0)
    rows = rows[np.argsort(items.stream[rows], kind="stable")]
    if not len(rows):
        return chains
    op, stream = items.op[rows], items.stream[rows]
    fusible = name_matches(trace.names, ops.name[op], _is_fusible) & (ops.work[op] == Work.STREAMING)
    fusible &= ~graph.issued_in(graph.base.recording.optimizer_steps)[rows]
    same = fusible[1:] & fusible[:-1] & (stream[1:] == stream[:-1])
    chains[rows] = np.where(fusible, np.cumsum(np.append(True, ~same)) - 1, -1)
    return chains


def _is_fusible(name: str) -> bool:
    return first_match(fusible_patterns(), name) not in (None, NOT_FUSED)


def _longest(length: Ints, chain: Ints) -> Bools:
    """Returns the longest item of each chain, the first one of equals."""
    longest = np.zeros(len(chain), np.bool_)
    rows = np.flatnonzero(chain >= 0)
    if not len(rows):
        return longest
    rows = rows[np.lexsort((-length[rows], chain[rows]))]
    longest[rows[np.append(True, np.diff(chain[rows]) != 0)]] = True
    return longest


SCENARIO = Scenario("fusing", apply)
