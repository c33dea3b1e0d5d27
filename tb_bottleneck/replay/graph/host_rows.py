"""The host's part of the graph: the calls that launch or wait, and which row each one follows.

Everything else on the host is the time between two rows. A row follows the one before it on its own thread, unless
another thread's row ended later and close before it: then that thread handed over, as the forward and the autograd
thread do.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.idle_gaps import RETURN_LAG_NS, SHORTEST_WAIT_NS
from tb_bottleneck.replay.graph.group_rows import rows_by_key
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints, Table, column
from tb_bottleneck.trace.trace import Trace

# A thread whose own last row ended this much before another's was idle meanwhile: the other handed over to it.
THREAD_HANDOVER_NS = 50_000
NONE = -1
_FREES = ("Free", "Unmap", "Release")
# CUDA C++ Programming Guide, implicit synchronisation: device memory is given back when the device is done with it.
_SYNCHRONISING = ("cudaFree", "hipFree")


@dataclass(frozen=True, eq=False)
class HostRows(Table):
    """Calls that launch or wait, and the begins of steps, sorted by start."""

    call: Ints = column("row of calls", "the call; -1 for the begin of a step")
    mark: Ints = column("index", "which edge of the steps this is; -1 for a call")
    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "return")
    thread: Ints = column("row of threads", "the thread")
    follows: Ints = column("row of host rows", "the row that has to return before this one can begin; -1 for none")

    def of_calls(self, calls: int) -> Ints:
        """The row of each of so many calls; -1 for one that takes no part."""
        row_of = np.full(calls, NONE)
        taking_part = np.flatnonzero(self.call >= 0)
        row_of[self.call[taking_part]] = taking_part
        return row_of


def host_rows(trace: Trace, steps: Steps, main_thread: int) -> HostRows:
    """The rows of a recording. The edges of a window that was not cut into steps are no rows."""
    calls = trace.calls
    taken = np.flatnonzero(_taking_part(trace))
    edges = np.empty(0, np.int64) if steps.basis == "whole" else steps.host
    call = np.concatenate((np.full(len(edges), NONE), taken))
    mark = np.concatenate((np.arange(len(edges)), np.full(len(taken), NONE)))
    start = np.concatenate((edges, calls.start[taken]))
    end = np.concatenate((edges, calls.end[taken]))
    thread = np.concatenate((np.full(len(edges), main_thread), calls.thread[taken]))
    order = np.lexsort((-end, mark < 0, start))  # a step begins before the call that begins with it
    start, end, thread = start[order], end[order], thread[order]
    return HostRows(call[order], mark[order], start, end, thread, _predecessors(start, end, thread))


def ended_inside(trace: Trace) -> tuple[Bools, Ints]:
    """For each call whether device work ended while it ran, and the operation that ended last by its return.

    The end may seem to lie a little behind the return, as inexact as the device's clock is.
    """
    ops, calls = trace.all_device_ops, trace.calls
    if not len(ops):
        return np.zeros(len(calls), np.bool_), np.zeros(len(calls), np.int64)
    order = np.argsort(ops.end, kind="stable")
    latest = np.searchsorted(ops.end[order], calls.end + RETURN_LAG_NS, side="right") - 1
    op = order[np.maximum(latest, 0)]
    return (latest >= 0) & (ops.end[op] > calls.start), op.astype(np.int64)


def drains(trace: Trace) -> Bools:
    """Calls that give memory back and wait for the device: plain frees always do, others where they were seen to."""
    calls = trace.calls
    always = name_matches(trace.names, calls.name, _SYNCHRONISING.__contains__)
    frees = name_matches(trace.names, calls.name, lambda name: any(word in name for word in _FREES))
    long = calls.end - calls.start > SHORTEST_WAIT_NS
    found: Bools = (calls.role == Role.ALLOCATE) & (always | (frees & long & ended_inside(trace)[0]))
    return found


def _taking_part(trace: Trace) -> Bools:
    """Calls with device work of their own, waits, and frees that drain; of threads that neither launch nor block none.

    NCCL's watchdog and the like only ask whether something is done: they hold nobody up.
    """
    calls, ops = trace.calls, trace.all_device_ops
    launching = np.zeros(len(calls), np.bool_)
    launching[ops.call[ops.launched]] = True
    waiting = calls.role == Role.WAIT
    blocking = waiting & ended_inside(trace)[0] & (calls.end - calls.start > SHORTEST_WAIT_NS)
    active = np.isin(calls.thread, np.unique(calls.thread[launching | blocking]))
    return np.asarray((launching | waiting | drains(trace)) & active, np.bool_)


def _predecessors(start: Ints, end: Ints, thread: Ints) -> Ints:
    own = np.full(len(start), NONE)
    for rows in rows_by_key(thread):
        own[rows[1:]] = rows[:-1]
    by_end = np.argsort(end, kind="stable")
    latest = np.searchsorted(end[by_end], start, side="right") - 1
    other = np.where(latest >= 0, by_end[np.maximum(latest, 0)], NONE)
    other = np.where(other < np.arange(len(start)), other, NONE)
    handed = (other >= 0) & ((own < 0) | (end[other] > end[own] + THREAD_HANDOVER_NS))
    return np.where(handed, other, own).astype(np.int64)
