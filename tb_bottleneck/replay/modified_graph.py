"""Modified graphs of a recording: changed items, and lower bounds of the resulting time."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import ActivityTimes
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.replay.graph.graph import Items
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.simulator import replay
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
