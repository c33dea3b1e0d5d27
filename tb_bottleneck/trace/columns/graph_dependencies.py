"""The recorded dependencies between operations of a CUDA graph.

torch 2.15 writes these dependencies with `enable_graph_dependencies` of torch.profiler.CuspyConfig. In JSON, a
dependency is a flow (a pair of events "s" and "f" with the same id) from the end of an operation to the start of an
operation that has to wait for it. The ids begin at 2^40; flows with smaller ids link operations to launching calls
(torch/profiler/_cuspy/trace.py: _graph_dependency_flow_events). In native traces, dependencies are the `event_wait_ids`
of render stages, which the reader converts to the same flows.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tb_bottleneck.trace.columns.number_columns import times
from tb_bottleneck.trace.table import Bools, Ints, Rows, Table, column

FIRST_ID = 1 << 40
MAX_FLOWS = 5_000_000
"""Most flows. A graph of 10,000 nodes has about 10,000 dependencies, and a recording has some hundred replays."""

ROUNDING_NS = 2
"""Largest difference between the end of an operation and the start of its flow. They differ because the start and the
duration of the operation are rounded separately in JSON."""


SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True, eq=False)
class Flows(Table):
    """One row per recorded dependency: the second operation has to wait for the first one."""

    ended: Ints = column("ns", "when the first operation ended")
    ended_on: Ints = column("row of threads", "the stream of the first operation")
    started: Ints = column("ns", "when the second operation started")
    started_on: Ints = column("row of threads", "the stream of the second operation")

    def operations(self, start: Ints, end: Ints, queue: Ints) -> tuple[Rows, Rows]:
        """Returns two arrays of rows of operations: first[i] must end before second[i] starts.

        `start`, `end` (ns) and `queue` (row of threads) are columns of all operations, and rows refer to these columns.
        A flow is left out if one of its two operations is not found.
        """
        before, found = _at(end, queue, self.ended, self.ended_on)
        after, also_found = _at(start, queue, self.started, self.started_on)
        both = found & also_found
        return before[both], after[both]


class FlowsBuilder:
    """Builds the table of flows from batches of events. `lost` counts events that are left out because of MAX_FLOWS."""

    def __init__(self, thread: Callable[[object, object], int]) -> None:
        """`thread` is a function from a process and a thread id to the row of this thread. It adds new threads."""
        self.lost: Counter[str] = Counter()
        self._thread = thread
        self._begins: dict[int, tuple[Any, int]] = {}
        self._ends: dict[int, tuple[Any, int]] = {}

    def add(self, events: Sequence[Any]) -> None:
        """Adds the begins ("s") and ends ("f") of flows with ids from FIRST_ID on. Ignores other events."""
        for event in events:
            if event.ph not in ("s", "f") or type(event.id) is not int or event.id < FIRST_ID:
                continue
            if len(self._begins) + len(self._ends) >= 2 * MAX_FLOWS:
                self.lost["dependencies"] += 1
                continue
            (self._begins if event.ph == "s" else self._ends)[event.id] = (event.ts, self._thread(event.pid, event.tid))

    def build(self) -> Flows:
        """Returns the table of all flows of which both the begin and the end were added."""
        pairs = [(*begin, *self._ends[number]) for number, begin in self._begins.items() if number in self._ends]
        if not pairs:
            return Flows.empty()
        ended, ended_on, started, started_on = zip(*pairs, strict=True)
        (end, is_end), (start, is_start) = times(list(ended)), times(list(started))
        good = is_end & is_start
        return Flows(end[good], np.array(ended_on)[good], start[good], np.array(started_on)[good])


def _at(time: Ints, queue: Ints, wanted: Ints, wanted_queue: Ints) -> tuple[Rows, Bools]:
    """Returns for each i the row with the time wanted[i] and the queue wanted_queue[i], and a mask: True if it exists.

    `time` (ns) and `queue` are the columns that are searched. Times are equal if they differ by at most ROUNDING_NS.
    """
    rows, found = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    own, asked = np.lexsort((time, queue)), np.lexsort((wanted, wanted_queue))
    queues = np.intersect1d(queue, wanted_queue)
    edges = [np.searchsorted(each, queues, side) for each in (queue[own], wanted_queue[asked]) for side in SIDES]
    for begin, end, first, last in zip(*(each.tolist() for each in edges), strict=True):
        order, mine = own[begin:end], asked[first:last]
        nearest = np.minimum(np.searchsorted(time[order], wanted[mine] - ROUNDING_NS), len(order) - 1)
        rows[mine] = order[nearest]
        found[mine] = np.abs(time[order][nearest] - wanted[mine]) <= ROUNDING_NS
    return rows, found
