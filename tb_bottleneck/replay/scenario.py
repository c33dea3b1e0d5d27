"""The type of a scenario, a simulated fix, and what several scenarios share."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.base.intervals import EMPTY, Spans, intersect
from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Floats, Ints


class Scenario(Record, frozen=True):
    """A fix that can be simulated on a graph.

    `name` is the key of its texts in knowledge/scenarios.toml. `apply` takes a graph and the assumed effect of the fix,
    and returns the modified graph, or None if the recording lacks what the simulation needs. `on_cpu` is True if the
    scenario also applies to CPU runs, whose graph has no device operations.
    """

    name: str
    apply: Callable[[ModifiedGraph, Estimate], ModifiedGraph | None]
    on_cpu: bool = False


def unchanged(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Returns `graph`."""
    return graph


class ParameterScenario(Scenario, frozen=True):
    """A scenario with a parameter, such as a number of loader workers: a what-if asks for the run with its value.

    `clause` describes it in words that follow "if", for example "the loader had 8 workers". `assumptions` are clauses
    or sentences. `factors` takes the estimate, and returns per operation of the judged device (time after the change /
    recorded time); `bounds` has what limits each operation then (BoundBy). Both are None if the device's work stays the
    same. `samples` is (samples per step after the change / before). `fix` is the scenario of the same fix without a
    parameter, or None.
    """

    apply: Callable[[ModifiedGraph, Estimate], ModifiedGraph] = unchanged
    clause: str = ""
    assumptions: tuple[str, ...] = ()
    factors: Callable[[Estimate], Floats] | None = None
    samples: float = 1.0
    bounds: Ints | None = None
    fix: Scenario | None = None


class CannotPredict(Exception):
    """A scenario cannot be predicted from the recording. The message says why."""


def scaled_on_cpu(graph: ModifiedGraph, spans: Spans, left: float) -> ModifiedGraph:
    """Returns the graph of a CPU run in which operators and Python code in `spans` take the share `left` of their time.

    `spans` are in ns on the clock of the host. In the graph of a CPU run, the items are the edges of the steps.
    """
    recording, gap = graph.base.recording, graph.items.gap
    edges, main = recording.steps.edges, recording.host.main_thread
    activities = {} if main is None else recording.host.activities(main)
    for activity in (Activity.DISPATCH, Activity.OTHER):
        inside = intersect(spans, activities.get(activity, EMPTY)).covered(edges[:-1], edges[1:])
        recorded = graph.base.graph.items.gap.of(activity)
        part = np.append(0.0, np.minimum(inside / np.maximum(recorded[1:], 1), 1.0))
        gap = gap.with_column(activity, scale_column(gap.of(activity), 1 - part * (1 - left)))
    return graph.with_items(gap=gap)


# On a CPU, other host work on the thread slows the operators, because their data and code leave the caches. Without
# this work, the operators take 1 - QUICKER_OPERATORS * (share of this work in the step) of their time. The value is the
# median of 60 pairs of recordings with and without such work (0.17, 0.20 and 0.16 with Python 3.10, 3.11 and 3.13;
# tests/measurements/trainings). The times of the operators were compared, not those of the steps.
QUICKER_OPERATORS = 0.18


def with_quicker_operators(
    before: ModifiedGraph, after: ModifiedGraph, share: float = 1.0, quicker: float = QUICKER_OPERATORS
) -> ModifiedGraph:
    """Returns the graph `after` of a CPU run with faster operators, because a fix has removed other host work.

    `before` is the same graph with this work. The operators take at most `share` (0 to 1) of their time, and get faster
    by `quicker` times the share of the removed work in the step. In the graph
    of a CPU run, the items are the edges of the steps, so each step changes by its own amount. For a run on a device,
    `after` is returned unchanged, because the operators do not compute on the host.
    """
    if before.base.recording.on_device:
        return after
    recorded = before.items.gap.total()
    removed = np.clip((recorded - after.items.gap.total()) / np.maximum(recorded, 1), 0.0, 1.0)
    left = np.minimum(1 - quicker * removed, share)
    return after.with_items(gap=after.gap_scaled(Activity.DISPATCH, left))


# The share of the removed time that stays, for fixes that may not work everywhere.
REMAINING_SHARE = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}


def waiting(graph: ModifiedGraph) -> Bools:
    """Returns a mask of the items whose call waits for the device. Calls that free memory, and launches that wait
    because the queue of their stream is full, are excluded."""
    items, calls = graph.items, graph.base.recording.trace.calls
    role = calls.role[items.call] if len(calls) else items.call
    mask: Bools = (items.call >= 0) & np.isin(role, (Role.WAIT, Role.COPY)) & ((items.waits >= 0) | items.drains)
    return mask
