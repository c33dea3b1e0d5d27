"""The host's part of the graph: the calls that launch or wait, and for each call the row that it follows.

All other host time is between two rows. A row follows the previous row on its own thread. But if a row of another
thread ended later than that, and before this row began, this row follows the row of the other thread: that thread
handed over, for example the forward thread to the autograd thread.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.idle_gaps import RETURN_LAG_NS, SHORTEST_WAIT_NS
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints, Table, column, rows_by_key
from tb_bottleneck.trace.trace import Trace

# If the previous row of a thread ended this long before a row of another thread, the thread was idle in between, and
# the other thread handed over to it.
THREAD_HANDOVER_NS = 50_000
NONE = -1
_FREES = ("Free", "Unmap", "Release")
# CUDA C++ Programming Guide, implicit synchronisation: freeing device memory waits until the device has finished with
# it.
_SYNCHRONISING = ("cudaFree", "hipFree")


@dataclass(frozen=True, eq=False)
class HostRows(Table):
    """The rows of the host: runtime calls that launch or wait, and the edges of steps, sorted by start."""

    call: Ints = column("row of calls", "the call; -1 for the start of a step")
    mark: Ints = column("index", "the step edge; -1 for a call")
    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "return")
    thread: Ints = column("row of threads", "the thread")
    follows: Ints = column("row of host rows", "the row that must return before this one can begin; -1 for none")

    def of_calls(self, calls: int) -> Ints:
        """Returns an array with the host row of each call; -1 if the call has no host row. `calls` is the number of
        calls of the trace."""
        row_of = np.full(calls, NONE)
        taking_part = np.flatnonzero(self.call >= 0)
        row_of[self.call[taking_part]] = taking_part
        return row_of


def host_rows(trace: Trace, steps: Steps, main_thread: int) -> HostRows:
    """Returns the host rows of a trace. The edges of `steps` become rows on `main_thread`, a row of `trace.threads`."""
    calls = trace.calls
    selected = np.flatnonzero(_gets_row(trace))
    if steps.basis != "whole":
        edges = steps.host
    else:
        edges = steps.host[:1] if starts_on_the_host(trace, steps) else np.empty(0, np.int64)
    call = np.concatenate((np.full(len(edges), NONE), selected))
    mark = np.concatenate((np.arange(len(edges)), np.full(len(selected), NONE)))
    start = np.concatenate((edges, calls.start[selected]))
    end = np.concatenate((edges, calls.end[selected]))
    thread = np.concatenate((np.full(len(edges), main_thread), calls.thread[selected]))
    order = np.lexsort((-end, mark < 0, start))  # a step begins before the call that begins at the same time
    start, end, thread = start[order], end[order], thread[order]
    return HostRows(call[order], mark[order], start, end, thread, _predecessors(start, end, thread))


def starts_on_the_host(trace: Trace, steps: Steps) -> bool:
    """Returns True if a window without step marks starts with host work, such as the fetch of the first batch.

    Otherwise, a window without step marks starts and ends with device operations.
    """
    return steps.begin < int(trace.device_ops.start.min(initial=steps.end))


@memoized
def ended_inside(trace: Trace) -> tuple[Bools, Ints]:
    """Returns a mask of the runtime calls during which a device operation ended, and per call the row of the operation
    that ended last before the call returned.

    An end up to RETURN_LAG_NS after the return counts as before it, because the clocks of host and device differ.
    """
    ops, calls = trace.all_device_ops, trace.calls
    if not len(ops):
        return np.zeros(len(calls), np.bool_), np.zeros(len(calls), np.int64)
    order = np.argsort(ops.end, kind="stable")
    latest = np.searchsorted(ops.end[order], calls.end + RETURN_LAG_NS, side="right") - 1
    op = order[np.maximum(latest, 0)]
    return (latest >= 0) & (ops.end[op] > calls.start), op.astype(np.int64)


def drains(trace: Trace) -> Bools:
    """Returns a mask of the runtime calls that free memory and wait until the device has finished all work: cudaFree,
    hipFree, and other frees that took long and during which a device operation ended."""
    calls = trace.calls
    always = name_matches(trace.names, calls.name, _SYNCHRONISING.__contains__)
    frees = name_matches(trace.names, calls.name, lambda name: any(word in name for word in _FREES))
    long = calls.end - calls.start > SHORTEST_WAIT_NS
    mask: Bools = (calls.role == Role.ALLOCATE) & (always | (frees & long & ended_inside(trace)[0]))
    return mask


def _gets_row(trace: Trace) -> Bools:
    """Returns a mask of the runtime calls that get a host row: launches, waits and waiting frees, on threads that
    launch or wait for long.

    Other threads, such as NCCL's watchdog, only query whether work has finished, and delay nothing.
    """
    calls, ops = trace.calls, trace.all_device_ops
    launching = np.zeros(len(calls), np.bool_)
    launching[ops.call[ops.launched]] = True
    waiting = calls.role == Role.WAIT
    blocking = waiting & ended_inside(trace)[0] & (calls.end - calls.start > SHORTEST_WAIT_NS)
    active = np.isin(calls.thread, distinct_values(calls.thread[launching | blocking]))
    return np.asarray((launching | waiting | drains(trace)) & active, np.bool_)


def _predecessors(start: Ints, end: Ints, thread: Ints) -> Ints:
    """Returns for each host row the row that it follows; -1 for none. `start` and `end` are in ns. All arrays have one
    value per row, sorted by start."""
    own = np.full(len(start), NONE)
    for rows in rows_by_key(thread):
        own[rows[1:]] = rows[:-1]
    by_end = np.argsort(end, kind="stable")
    latest = np.searchsorted(end[by_end], start, side="right") - 1
    latest -= end == start  # a row without length, such as the start of a step, is not its own predecessor
    other = np.where(latest >= 0, by_end[np.maximum(latest, 0)], NONE)
    other = np.where(other < np.arange(len(start)), other, NONE)
    handed = (other >= 0) & ((own < 0) | (end[other] > end[own] + THREAD_HANDOVER_NS))
    return np.where(handed, other, own).astype(np.int64)
