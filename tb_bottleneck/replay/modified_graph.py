"""What a scenario changes: the items of a graph, and what bounds the time from below whatever the items say."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from tb_bottleneck.attribution.cpu_operators import undisturbed_share
from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.replay.check import Check, check
from tb_bottleneck.replay.graph.blocks import Layout, layout_of
from tb_bottleneck.replay.graph.cpu_graph import host_graph_of
from tb_bottleneck.replay.graph.graph import Graph, Items, graph_of
from tb_bottleneck.replay.simulator import replay
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import named
from tb_bottleneck.trace.table import Bools, Floats, Ints

COMPUTING = (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)


def scaled(column: Ints, factor: Any) -> Ints:
    """The column times a factor, or times one per item, in whole ns."""
    return np.asarray(np.rint(column * factor), np.int64)


class Case(Enum):
    """How well a cure works out: as expected, as badly as it reasonably can, as well as it possibly can."""

    EXPECTED = "expected"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, eq=False)
class Facts:
    """What the worlds of one recording share: the recording, its graph, and the check of it."""

    recording: Recording

    @cached_property
    def graph(self) -> Graph:
        """The dependency graph."""
        return graph_of(self.recording) if self.recording.on_device else host_graph_of(self.recording)

    @cached_property
    def layout(self) -> Layout:
        """Its blocks."""
        return layout_of(self.graph)

    @cached_property
    def check(self) -> Check:
        """The unmodified replay."""
        return check(self.graph, self.layout)

    @property
    def ops(self) -> DeviceOps:
        """Device operations of all devices, which the items' `op` points at."""
        return self.recording.trace.all_device_ops

    @cached_property
    def computing(self) -> tuple[Ints, Ints]:
        """The items whose kernels compute on the judged device, in order of begin, and those begins in ns."""
        items, ops = self.graph.items, self.ops
        if not len(ops):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows = np.flatnonzero(np.isin(items.stream, self.graph.judged) & np.isin(ops.work[items.op], COMPUTING))
        rows = rows[np.argsort(ops.start[items.op[rows]], kind="stable")]
        return rows, ops.start[items.op[rows]]

    @cached_property
    def busy(self) -> int:
        """Time in which the judged device computed, in ns."""
        return self.busy_with(self.graph.items.length)

    def busy_with(self, length: Ints) -> int:
        """Time in which the judged device computes, were its kernels of these lengths to begin when they did, in ns.

        Kernels on several streams share the device, which the graph does not know. Collectives and copies take no part:
        they may run beside kernels.
        """
        rows, begin = self.computing
        steps = self.recording.steps
        end = np.clip(begin + length[rows], steps.begin, steps.end)
        begin = np.clip(begin, steps.begin, steps.end)
        # They come by begin, so each adds what of it lies beyond all before it.
        reach = np.maximum.accumulate(end)
        return int(np.maximum(reach - np.maximum(begin, np.append(steps.begin, reach[:-1])[: len(begin)]), 0).sum())

    @cached_property
    def quickest(self) -> float:
        """On a CPU run: time of undisturbed operators over that of the recorded ones."""
        return undisturbed_share(self.recording.trace, self.recording.host.main_thread)

    @cached_property
    def gap_length(self) -> Ints:
        """The recorded gap before each item, in ns."""
        return np.asarray(self.graph.items.gap.sum(axis=1), np.int64)

    def named(self, prefix: str) -> Spans:
        """When operators or annotations whose names begin so ran."""
        if prefix not in self._named:
            self._named[prefix] = self._rows_named(prefix)
        return self._named[prefix]

    @cached_property
    def _named(self) -> dict[str, Spans]:
        return {}

    def _rows_named(self, prefix: str) -> Spans:
        trace = self.recording.trace
        rows = trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
        rows = rows[named(trace.names, trace.events.name[rows], lambda name: name.startswith(prefix))]
        return union(trace.events.start[rows], trace.events.end[rows])


@dataclass(frozen=True, eq=False)
class World:
    """A recording as it would have been. `floor`: the window cannot be shorter, in ns. `batch`: samples per step grow
    by this factor."""

    facts: Facts
    items: Items
    floor: float = 0.0
    batch: float = 1.0

    def but(self, **changes: Any) -> "World":
        """The same with some columns of the items changed; the very same world where none is another than before.

        Most cures find nothing to cure in most recordings, and a world is replayed once at most.
        """
        others = {name: column for name, column in changes.items() if not self._holds(name, column)}
        return replace(self, items=replace(self.items, **others)) if others else self

    def _holds(self, name: str, column: Any) -> bool:
        mine = getattr(self.items, name)
        return column is mine or np.array_equal(column, mine)

    def at_least(self, floor: float) -> "World":
        """The same, with a window of no less than `floor` ns."""
        return replace(self, floor=max(self.floor, floor))

    def with_batch(self, times: float) -> "World":
        """The same, with so many times the samples per step."""
        return replace(self, batch=self.batch * times)

    def window(self) -> float:
        """Its time for the work of the recorded window, in ns: never below what the device needs for the work."""
        same_length = self.items.length is self.facts.graph.items.length
        busy = self.facts.busy if same_length else self.facts.busy_with(self.items.length)
        return max(self._simulated, self.floor, busy) / self.batch

    @cached_property
    def _simulated(self) -> int:
        return replay(self.facts.graph, self.facts.layout, self.items).window

    # --- what scenarios ask for ---

    def inside(self, spans: Spans) -> Bools:
        """Items that are issued in these spans."""
        return spans.contains(self.facts.graph.items.at)

    def gap_inside(self, spans: Spans) -> Floats:
        """The part of each item's recorded gap that lies in these spans, 0 to 1."""
        at, length = self.facts.graph.items.at, self.facts.gap_length
        covered = spans.covered(at - length, at)
        return np.where(length > 0, covered / np.maximum(length, 1), 0.0)

    def works(self, *works: int) -> Bools:
        """Items whose operation does one of these kinds of work."""
        op = self.items.op
        found: Bools = (op >= 0) & np.isin(self.facts.ops.work[op], works) if len(self.facts.ops) else op >= 0
        return found

    def gap_scaled(self, activity: Activity, factor: Any) -> Ints:
        """The gaps with what the host did so in them scaled by a factor, or by one per item."""
        gap = self.items.gap.copy(order="K")
        gap[:, activity] = scaled(gap[:, activity], factor)
        return gap


def recorded_world(facts: Facts) -> World:
    """The recording as it was."""
    return World(facts, facts.graph.items)
