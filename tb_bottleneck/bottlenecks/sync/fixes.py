"""Scenarios of waits: the host no longer waits for the device."""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.bottlenecks.sync.facts import EXPLICIT, OTHER, READ, SHAPE, UPLOAD, costly_waits_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import Scenario, waiting
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Ints

ALL_KINDS = (READ, UPLOAD, SHAPE, EXPLICIT, OTHER)
# The share of a step's waits that stays if code with waits of several kinds is rewritten. Source: two such rewrites of
# Segment Anything 2 (cpuhrsch/segment-anything-2, 535f901 and its fp32 twin) kept 18 % of the waits, and saved 69 and
# 70 % of what the replay saves without any wait.
COMBINED_REMAINING = {Estimate.EXPECTED: 0.3, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}


def without_waits(kinds: tuple[str, ...], graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes waits of the host for the device: values stay on the device and are read rarely, copies return at once.

    `kinds` are the kinds of waits to remove, such as READ (bottlenecks/sync/facts.py).

    Changes: calls that wait for one of these reasons no longer wait. If READ is removed, the operators that read a
    value and their copies take no time.
    Assumes: the next work of the host does not depend on the awaited result.
    Bounds: in the low estimate, the last wait of each step stays, and the reads and copies stay, too. The high estimate
    equals the expected one.
    """
    items = graph.items
    called = _called_by(graph, kinds)
    gone = waiting(graph) & called
    if estimate is Estimate.LOW:
        gone &= ~_last_of_steps(graph, gone)
    fixed = graph.with_items(waits=np.where(gone, NONE, items.waits), drains=items.drains & ~gone)
    return _without_reads(fixed, called) if READ in kinds and estimate is not Estimate.LOW else fixed


def apply_combined(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes waits of all kinds together, except for the last ones of each step: the share COMBINED_REMAINING stays.

    The waits that stay are consecutive, because a piece of code with several waits is rewritten as a whole or not at
    all.
    """
    fixed, remaining = without_waits(ALL_KINDS, graph, estimate), COMBINED_REMAINING[estimate]
    removed = np.flatnonzero(waiting(graph) & ~waiting(fixed))
    _, first, count = np.unique(_steps(graph)[removed], return_index=True, return_counts=True)
    rank = np.arange(len(removed)) - np.repeat(first, count)
    stays = removed[rank >= np.repeat(np.ceil(count * (1 - remaining)), count)]
    waits, drains = fixed.items.waits.copy(), fixed.items.drains.copy()
    waits[stays], drains[stays] = graph.items.waits[stays], graph.items.drains[stays]
    return fixed.with_items(waits=waits, drains=drains)


def _called_by(graph: ModifiedGraph, kinds: tuple[str, ...]) -> Bools:
    """Returns a mask of the items whose runtime call comes from an operator with costly waits of `kinds`.

    An item counts even if its own call is short, as long as other calls of an operator of the same name wait. If no
    operator made the call, the name of the runtime function is used instead.
    """
    trace, call = graph.base.recording.trace, graph.items.call
    if not len(trace.calls):
        return call >= 0
    called, operator = trace.calling_operators
    names = np.where(called, trace.events.name[operator], trace.calls.name)[call]
    by = {wait.operator for wait in costly_waits_of(graph.base.recording) if wait.kind in kinds}
    return np.asarray((call >= 0) & name_matches(trace.names, names, by.__contains__), np.bool_)


def _without_reads(graph: ModifiedGraph, called: Bools) -> ModifiedGraph:
    """Returns the graph in which reading single values (`aten::item`) takes no time, and neither do copies to the host
    by the items in the mask `called`."""
    items, reads = graph.items, graph.base.spans_named("aten::item")
    copied = called & graph.with_work(Work.DOWNLOAD)
    return graph.with_items(
        cost=np.where(called & graph.issued_in(reads), 0, items.cost),
        length=np.where(copied, 0, items.length),
        gap=graph.gap_scaled(Activity.DISPATCH, 1 - graph.gap_share_in(reads)),
    )


def _last_of_steps(graph: ModifiedGraph, waits: Bools) -> Bools:
    """Returns a mask of the last item of each step among the items in the mask `waits`."""
    step, rows = _steps(graph), np.flatnonzero(waits)
    last = np.zeros(len(waits), np.bool_)
    if len(rows):
        last[rows[np.append(np.diff(step[rows]) != 0, True)]] = True
    return last


def _steps(graph: ModifiedGraph) -> Ints:
    """Returns per item the number of steps that had started on the host when the item was issued."""
    return np.searchsorted(graph.base.recording.steps.host, graph.base.graph.items.at, side="right")


SCALAR_READS = Scenario("reads", partial(without_waits, (READ,)))
UPLOADS = Scenario("uploads", partial(without_waits, (UPLOAD,)))
SHAPES = Scenario("shapes", partial(without_waits, (SHAPE,)))
EXPLICITS = Scenario("explicit_waits", partial(without_waits, (EXPLICIT,)))
WAITS = Scenario("waits", partial(without_waits, ALL_KINDS))
COMBINED = Scenario("waits_combined", apply_combined)

FIXES = {
    "scalar_reads": SCALAR_READS,
    "metric_reads": SCALAR_READS,
    "blocking_uploads": UPLOADS,
    "data_dependent_shapes": SHAPES,
    "explicit_waits": EXPLICITS,
    "blocking_waits": WAITS,
    "waits_combined": COMBINED,
}
"""The scenario that simulates the fix of each cause."""
