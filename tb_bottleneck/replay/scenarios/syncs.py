"""Removes host waits for the device: values stay on the device and are read rarely, copies return at once.

Changes: calls of the selected kinds no longer wait; operators that read a value are removed with their copies.
Assumes: what the host does next does not depend on what it waited for.
Bounds: low: one wait per step stays, the last one. High: all are removed, as expected.
"""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.measures.trace.costly_syncs import EXPLICIT, OTHER, READ, SHAPE, UPLOAD, costly_waits_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools

ALL_KINDS = (READ, UPLOAD, SHAPE, EXPLICIT, OTHER)


def apply(kinds: tuple[str, ...], graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the waits of these kinds (measures/trace/costly_syncs.py)."""
    items = graph.items
    called = _called_by(graph, kinds)
    gone = waiting(graph) & called
    if estimate is Estimate.LOW:
        gone &= ~_last_of_steps(graph, gone)
    fixed = graph.with_items(waits=np.where(gone, NONE, items.waits), drains=items.drains & ~gone)
    return _without_reads(fixed, called) if READ in kinds and estimate is not Estimate.LOW else fixed


def waiting(graph: ModifiedGraph) -> Bools:
    """Returns the items in which the program waits for the device: not frees, nor launches into a full queue."""
    items, calls = graph.items, graph.base.recording.trace.calls
    role = calls.role[items.call] if len(calls) else items.call
    mask: Bools = (items.call >= 0) & np.isin(role, (Role.WAIT, Role.COPY)) & ((items.waits >= 0) | items.drains)
    return mask


def _called_by(graph: ModifiedGraph, kinds: tuple[str, ...]) -> Bools:
    """Returns the items with calls by the operators, or by the program itself, that waits of these kinds name."""
    trace, call = graph.base.recording.trace, graph.items.call
    if not len(trace.calls):
        return call >= 0
    called, operator = trace.calling_operators
    names = np.where(called, trace.events.name[operator], trace.calls.name)[call]
    by = {wait.operator for wait in costly_waits_of(graph.base.recording) if wait.kind in kinds}
    return np.asarray((call >= 0) & name_matches(trace.names, names, by.__contains__), np.bool_)


def _without_reads(graph: ModifiedGraph, called: Bools) -> ModifiedGraph:
    """Removes the copies to the host by these operators, and the time of reading single values."""
    items, reads = graph.items, graph.base.spans_named("aten::item")
    copied = called & graph.with_work(Work.DOWNLOAD)
    return graph.with_items(
        cost=np.where(called & graph.issued_in(reads), 0, items.cost),
        length=np.where(copied, 0, items.length),
        gap=graph.gap_scaled(Activity.DISPATCH, 1 - graph.gap_share_in(reads)),
    )


def _last_of_steps(graph: ModifiedGraph, waits: Bools) -> Bools:
    """Returns the last wait of each step."""
    step = np.searchsorted(graph.base.recording.steps.host, graph.base.graph.items.at, side="right")
    rows = np.flatnonzero(waits)
    last = np.zeros(len(waits), np.bool_)
    if len(rows):
        last[rows[np.append(np.diff(step[rows]) != 0, True)]] = True
    return last


SCALAR_READS = Scenario("reads", partial(apply, (READ,)))
UPLOADS = Scenario("uploads", partial(apply, (UPLOAD,)))
SHAPES = Scenario("shapes", partial(apply, (SHAPE,)))
EXPLICITS = Scenario("explicit_waits", partial(apply, (EXPLICIT,)))
WAITS = Scenario("waits", partial(apply, ALL_KINDS))
