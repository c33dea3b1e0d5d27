"""Scenarios of collectives: faster collectives, and collectives in parallel with compute."""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import Scenario
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.table import Bools, Floats, Rows

EXPECTED_SHARE, LOW_SHARE = 0.5, 0.8


def with_faster_collectives(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Makes collectives faster: they exchange gradients in half precision, or use a link that is twice as fast.

    Changes: every collective takes EXPECTED_SHARE of its time.
    Assumes: the link limits collectives, not a late rank. Only recordings of all ranks can distinguish the two.
    Bounds: in the low estimate, collectives take LOW_SHARE of their time, as if the ranks mostly waited for each other.
    In the high estimate, they take EXPECTED_SHARE, and no operation on another stream waits for a collective.
    """
    items = graph.items
    collectives = graph.with_work(Work.COLLECTIVE)
    left = LOW_SHARE if estimate is Estimate.LOW else EXPECTED_SHARE
    shorter = np.where(collectives, scale_column(items.length, left), items.length)
    if estimate is not Estimate.HIGH:
        return graph.with_items(length=shorter)
    return graph.with_items(
        length=shorter, after=np.where((items.after >= 0) & collectives[items.after], NONE, items.after)
    )


FASTER_COLLECTIVES = Scenario("collectives", with_faster_collectives)


HIDDEN_SHARE = {Estimate.EXPECTED: 0.8, Estimate.LOW: 0.5, Estimate.HIGH: 1.0}


def overlapped(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Runs collectives in parallel with the backward pass: each begins as soon as its gradients are ready.

    Returns None if no backward pass was recorded.

    Changes: in each step, the backward kernels can hide as much collective time as they take. Of this part of the
    collective time, the share HIDDEN_SHARE is removed.
    Assumes: gradients become ready one after the other during the backward pass, and the last bucket is small.
    Bounds: collective time beyond the time of the backward kernels stays. The low and the high estimate use the
    corresponding values of HIDDEN_SHARE.
    """
    items = graph.items
    backward = graph.base.spans_named("autograd::engine::evaluate_function")
    if not len(backward):
        return None
    collectives = graph.with_work(Work.COLLECTIVE)
    computing = graph.with_work(*COMPUTE_KERNELS) & graph.issued_in(backward)
    step = np.searchsorted(graph.base.recording.steps.host, graph.base.graph.items.at, side="right")
    exposed, hiding = _sums(graph, step, collectives), _sums(graph, step, computing)
    remaining = 1 - HIDDEN_SHARE[estimate] * np.minimum(hiding / np.maximum(exposed, 1), 1.0)
    return graph.with_items(length=np.where(collectives, scale_column(items.length, remaining[step]), items.length))


def _sums(graph: ModifiedGraph, step: Rows, rows: Bools) -> Floats:
    """Returns per step the total time (ns) of the device operations of the items in the mask `rows`. `step` has the
    step number of each item."""
    count = len(graph.base.recording.steps.host) + 1
    return np.asarray(np.bincount(step[rows], weights=graph.items.length[rows], minlength=count), np.float64)


OVERLAP = Scenario("overlap", overlapped)

FIXES = {
    "exposed_collectives": FASTER_COLLECTIVES,
    "exposed_shards": FASTER_COLLECTIVES,
    "exposed_all_to_all": FASTER_COLLECTIVES,
    "nccl_sockets": FASTER_COLLECTIVES,
    "slow_interconnect": FASTER_COLLECTIVES,
    "small_messages": FASTER_COLLECTIVES,
    "no_overlap": OVERLAP,
    "one_bucket": OVERLAP,
}
"""The scenario that simulates the fix of each cause."""
