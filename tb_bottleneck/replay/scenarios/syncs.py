"""Removes host waits for the device: values stay on the device and are read rarely, copies return at once.

Changes: calls of the selected kinds no longer wait; operators that read a value are removed with their copies.
Assumes: what the host does next does not depend on what it waited for.
Bounds: low: one wait per step stays, the last one. High: all are removed, as expected. If the waits of all kinds are
removed together, some stay: see COMBINED_REMAINING.
"""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.measures.trace.syncs import EXPLICIT, OTHER, READ, SHAPE, UPLOAD, costly_waits_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints

ALL_KINDS = (READ, UPLOAD, SHAPE, EXPLICIT, OTHER)
# The share of a step's waits that stays if code with waits of several kinds is rewritten. Source: two such rewrites of
# Segment Anything 2 (cpuhrsch/segment-anything-2, 535f901 and its fp32 twin) kept 18 % of the waits, and saved 69 and
# 70 % of what the replay saves without any wait.
COMBINED_REMAINING = {Estimate.EXPECTED: 0.3, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}


def apply(kinds: tuple[str, ...], graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the waits of these kinds (measures/trace/syncs.py)."""
    items = graph.items
    called = _called_by(graph, kinds)
    gone = waiting(graph) & called
    if estimate is Estimate.LOW:
        gone &= ~_last_of_steps(graph, gone)
    fixed = graph.with_items(waits=np.where(gone, NONE, items.waits), drains=items.drains & ~gone)
    return _without_reads(fixed, called) if READ in kinds and estimate is not Estimate.LOW else fixed


def apply_combined(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the waits of all kinds, except the last ones of each step, by COMBINED_REMAINING.

    The waits that stay are neighbours, because code is rewritten as a whole or not at all.
    """
    fixed, remaining = apply(ALL_KINDS, graph, estimate), COMBINED_REMAINING[estimate]
    removed = np.flatnonzero(waiting(graph) & ~waiting(fixed))
    _, first, count = np.unique(_steps(graph)[removed], return_index=True, return_counts=True)
    rank = np.arange(len(removed)) - np.repeat(first, count)
    stays = removed[rank >= np.repeat(np.ceil(count * (1 - remaining)), count)]
    waits, drains = fixed.items.waits.copy(), fixed.items.drains.copy()
    waits[stays], drains[stays] = graph.items.waits[stays], graph.items.drains[stays]
    return fixed.with_items(waits=waits, drains=drains)


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
    step, rows = _steps(graph), np.flatnonzero(waits)
    last = np.zeros(len(waits), np.bool_)
    if len(rows):
        last[rows[np.append(np.diff(step[rows]) != 0, True)]] = True
    return last


def _steps(graph: ModifiedGraph) -> Ints:
    """Returns the step of each item."""
    return np.searchsorted(graph.base.recording.steps.host, graph.base.graph.items.at, side="right")


SCALAR_READS = Scenario("reads", partial(apply, (READ,)))
UPLOADS = Scenario("uploads", partial(apply, (UPLOAD,)))
SHAPES = Scenario("shapes", partial(apply, (SHAPE,)))
EXPLICITS = Scenario("explicit_waits", partial(apply, (EXPLICIT,)))
WAITS = Scenario("waits", partial(apply, ALL_KINDS))
COMBINED = Scenario("waits_combined", apply_combined)
