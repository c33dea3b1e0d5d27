"""A recorded dependency graph, and modified graphs: changed items, and lower bounds of the resulting time."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from tb_bottleneck.attribution.cpu_attribution import undisturbed_share
from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import ActivityTimes
from tb_bottleneck.attribution.profiler_time.logged_steps import filling_steps
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.replay.graph.blocks import Layout, layout_of
from tb_bottleneck.replay.graph.cpu_graph import host_graph_of
from tb_bottleneck.replay.graph.graph import Graph, Items, graph_of
from tb_bottleneck.replay.host_phases import phase_weights
from tb_bottleneck.replay.simulator import Check, check, replay
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.process_facts import HOST_PACE, positive
from tb_bottleneck.trace.table import Bools, Floats, Ints


def scale_column(column: Ints, factor: float | Floats) -> Ints:
    """Returns `column` (times in ns, one per item) multiplied by `factor` and rounded to whole ns. `factor` is one
    number, or one number per item."""
    return np.asarray(np.rint(column * factor), np.int64)


class Estimate(Enum):
    """The assumed effect of a fix: `EXPECTED`, or the smallest (`LOW`) or largest (`HIGH`) plausible effect."""

    EXPECTED = "expected"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, eq=False)
class RecordedGraph:
    """A recording, its dependency graph, and derived values that all modified graphs of the recording share."""

    recording: Recording

    @cached_property
    def graph(self) -> Graph:
        """The dependency graph: of host and device (graph_of), or for a CPU run of the main thread (host_graph_of)."""
        return graph_of(self.recording) if self.recording.on_device else host_graph_of(self.recording)

    @cached_property
    def layout(self) -> Layout:
        """The blocks of the graph: groups of items that the simulation processes at once (graph/blocks.py)."""
        return layout_of(self.graph)

    @cached_property
    def check(self) -> Check:
        """The error of a replay of the unmodified graph, which decides whether predictions are made."""
        return check(self.graph, self.layout)

    @property
    def ops(self) -> DeviceOps:
        """The operations of all devices. The column `op` of Items contains row numbers of this table."""
        return self.recording.trace.all_device_ops

    @cached_property
    def computing(self) -> tuple[Ints, Ints]:
        """The rows of the items with compute kernels of the judged device, and the recorded start times of these
        kernels in ns. Both are sorted by start. Collectives and copies are no compute kernels."""
        items, ops = self.graph.items, self.ops
        if not len(ops):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows = np.flatnonzero(np.isin(items.stream, self.graph.judged) & np.isin(ops.work[items.op], COMPUTE_KERNELS))
        rows = rows[np.argsort(ops.start[items.op[rows]], kind="stable")]
        return rows, ops.start[items.op[rows]]

    @cached_property
    def busy(self) -> int:
        """The recorded time in which at least one compute kernel ran on the judged device, in ns."""
        return self.busy_with(self.graph.items.length)

    def busy_with(self, length: Ints) -> int:
        """Returns the time in ns in which the judged device would compute if the operations had other lengths.

        `length` has one length (ns) per item. The kernels keep their recorded start times. The result is a lower bound
        of the window, because kernels on several streams share the device, which the graph does not model. Collectives
        and copies are left out, because they may run in parallel with kernels.
        """
        rows, begin = self.computing
        steps = self.recording.steps
        end = np.clip(begin + length[rows], steps.begin, steps.end)
        begin = np.clip(begin, steps.begin, steps.end)
        # Kernels are sorted by start, so each one adds only the part that ends after all earlier ones.
        reach = np.maximum.accumulate(end)
        return int(np.maximum(reach - np.maximum(begin, np.append(steps.begin, reach[:-1])[: len(begin)]), 0).sum())

    @cached_property
    def quickest_share(self) -> float:
        """For a CPU run: time of the operators if nothing disturbs them / their recorded time, from 0 to 1."""
        return undisturbed_share(self.recording.trace, self.recording.main_operators)

    @cached_property
    def host_pace(self) -> tuple[float, ...]:
        """Times (ns) of steps in which the device did not hold the host back; empty if they were not recorded."""
        recording = self.recording
        found = recording.trace.header.context.get(HOST_PACE)
        known = tuple(time for time in map(positive, found if isinstance(found, list) else ()) if time is not None)
        return (known or filling_steps(recording)) if recording.on_device and recording.steps.basis != "whole" else ()

    @cached_property
    def phase_weights(self) -> Floats | None:
        """Per item, how the scale of the dispatching in its phase of the step differs (host_phases.py); None if that is
        not known."""
        if not self.recording.on_device:
            return None
        pace = float(np.median(self.host_pace)) if self.host_pace else 0.0
        return phase_weights(self.recording, self.graph.items, pace)

    @cached_property
    def gap_length(self) -> Ints:
        """The recorded host time before the issue of each item, in ns, summed over all host activities."""
        return self.graph.items.gap.total()

    def spans_named(self, prefix: str) -> Spans:
        """Returns the time spans (ns, merged if they overlap) in which operators or annotations ran whose names begin
        with `prefix`. The result is cached."""
        if prefix not in self._spans_by_prefix:
            self._spans_by_prefix[prefix] = self._find_spans(prefix)
        return self._spans_by_prefix[prefix]

    @cached_property
    def _spans_by_prefix(self) -> dict[str, Spans]:
        return {}

    def _find_spans(self, prefix: str) -> Spans:
        trace = self.recording.trace
        rows = trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
        rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(prefix))]
        return union(trace.events.start[rows], trace.events.end[rows])


@dataclass(frozen=True, eq=False)
class ModifiedGraph:
    """A recorded graph `base` with modified `items`. Modifications return a new object.

    The simulated window is never shorter than `floor` ns. A step processes `batch` times as many samples as recorded.
    Loader workers need at least `pace` ns to make the batches of the recorded window. If `paced` is True, the window
    is never shorter than the host needs alone: a window of few steps begins with a queue of launches, which a host
    that becomes the limit would not have in a longer run.
    """

    base: RecordedGraph
    items: Items
    floor: float = 0.0
    batch: float = 1.0
    pace: float = 0.0
    paced: bool = False

    def with_items(
        self,
        *,
        gap: ActivityTimes | None = None,
        cost: Ints | None = None,
        waits: Ints | None = None,
        drains: Bools | None = None,
        lag: Ints | None = None,
        length: Ints | None = None,
        pause: Ints | None = None,
        after: Ints | None = None,
    ) -> "ModifiedGraph":
        """Returns a graph with the given columns of Items replaced, or this object itself if no column differs.

        Returning the same object saves time: each graph object is replayed at most once, and most fixes change nothing
        in most recordings.
        """
        columns: dict[str, Any] = {
            "gap": gap,
            "cost": cost,
            "waits": waits,
            "drains": drains,
            "lag": lag,
            "length": length,
            "pause": pause,
            "after": after,
        }
        changes = {name: column for name, column in columns.items() if column is not None}
        changes = {name: column for name, column in changes.items() if not self._has_column(name, column)}
        return replace(self, items=replace(self.items, **changes)) if changes else self

    def with_gap(self, activity: Activity, column: Ints) -> "ModifiedGraph":
        """Returns a graph in which the host spends `column` (ns, one per item) on `activity` before each item."""
        return self.with_items(gap=self.items.gap.with_column(activity, column))

    def _has_column(self, name: str, column: Any) -> bool:
        current = getattr(self.items, name)
        return column is current or (
            current.equals(column) if isinstance(current, ActivityTimes) else np.array_equal(column, current)
        )

    def with_floor(self, floor: float) -> "ModifiedGraph":
        """Returns a copy whose window takes at least `floor` ns. If this graph has a larger floor, that floor is
        kept."""
        return replace(self, floor=max(self.floor, floor))

    def with_pace(self, pace: float) -> "ModifiedGraph":
        """Returns a copy with loader workers that need at least `pace` ns for the batches of the recorded window; 0
        removes the limit."""
        return replace(self, pace=pace)

    def with_batch(self, factor: float) -> "ModifiedGraph":
        """Returns a copy with `factor` times as many samples per step as in this graph."""
        return replace(self, batch=self.batch * factor)

    def window(self) -> float:
        """Returns the simulated time in ns for as many samples as the recorded window has.

        The result has four lower bounds: `floor`, the time in which the judged device computes, if `paced` the time of
        the host alone, and `pace`. The first three are divided by `batch`, as the simulated time is; `pace` is not.
        """
        same_length = self.items.length is self.base.graph.items.length
        busy = self.base.busy if same_length else self.base.busy_with(self.items.length)
        return max(max(self._simulated, self.floor, busy, self._host_alone) / self.batch, self.pace)

    @cached_property
    def _host_alone(self) -> float:
        return self.host_step() * len(self.base.recording.steps) if self.paced else 0.0

    def host_step(self) -> float:
        """Returns the time in ns that the host alone needs for the median step. A step in which the host waited for a
        full queue of launches is longer, and others are shorter."""
        return float(np.median(self.without_device().simulated_steps()))

    def without_device(self) -> "ModifiedGraph":
        """Returns a copy in which the device needs no time: its window is the time of the host."""
        items = self.items
        alone = self.with_items(length=np.zeros_like(items.length), lag=np.zeros_like(items.lag))
        return replace(alone, paced=False)

    def step_times(self) -> Floats:
        """Returns the step times in ns. Their sum is `window()`: if a lower bound lengthens the window, all steps get
        longer by the same factor."""
        return np.asarray(self.simulated_steps() * (self.window() / max(self._simulated, 1)), np.float64)

    def simulated_steps(self) -> Floats:
        """Returns the step times in ns from the replay alone: not divided by `batch`, and without lower bounds."""
        return np.asarray(np.diff(self._edges), np.float64)

    @property
    def _simulated(self) -> int:
        return int(self._edges[-1] - self._edges[0])

    @cached_property
    def _edges(self) -> Ints:
        """The simulated start of each step and the end of the last one, in ns. The other results of the replay are
        dropped, because a plan keeps many graphs in memory."""
        return replay(self.base.graph, self.base.layout, self.items).edges

    # --- queries for scenarios ---

    def issued_in(self, spans: Spans) -> Bools:
        """Returns a mask of the items whose recorded issue time is in `spans`."""
        return spans.contains(self.base.graph.items.at)

    def gap_share_in(self, spans: Spans) -> Floats:
        """Returns per item the share (0 to 1) of the recorded host time before its issue that is in `spans`."""
        at, length = self.base.graph.items.at, self.base.gap_length
        covered = spans.covered(at - length, at)
        return np.where(length > 0, covered / np.maximum(length, 1), 0.0)

    def with_work(self, *works: int) -> Bools:
        """Returns a mask of the items with a device operation whose kind of work is one of `works` (values of Work)."""
        op = self.items.op
        mask: Bools = (op >= 0) & np.isin(self.base.ops.work[op], works) if len(self.base.ops) else op >= 0
        return mask

    def of_operations(self, values: Floats) -> Floats:
        """Returns one value per item from `values`, which has one value per operation of the judged device. Items
        without such an operation get 1."""
        recording = self.base.recording
        all_values = np.ones(len(self.base.ops) + 1)  # the last one is for items without an operation
        all_values[np.flatnonzero(self.base.ops.device == recording.trace.device_index)] = values
        return np.asarray(all_values[self.items.op])

    def gap_scaled(self, activity: Activity, factor: float | Floats) -> ActivityTimes:
        """Returns the column `gap` of the items with the time of `activity` multiplied by `factor`: one number, or one
        number per item."""
        gap = self.items.gap
        return gap.with_column(activity, scale_column(gap.of(activity), factor))


def unmodified_graph(base: RecordedGraph) -> ModifiedGraph:
    """Returns the graph of `base` with the recorded items and no lower bounds."""
    return ModifiedGraph(base, base.graph.items)


def on_host(graph: ModifiedGraph, factor: float) -> ModifiedGraph:
    """Returns the graph with all host time multiplied by `factor`: gaps, calls, and the floor of the window, because
    loading batches also takes host time."""
    items = graph.items
    gap = items.gap.each(lambda column: scale_column(column, factor))
    scaled = graph.with_items(gap=gap, cost=scale_column(items.cost, factor))
    return replace(scaled, floor=graph.floor * factor)
