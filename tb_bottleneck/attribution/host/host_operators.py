"""Operators that compute on the host although the run has a device.

Dispatching an operator takes microseconds, and the kernel that it launches does the work. A long operator that makes no
runtime call launches nothing: its tensors are in host memory, and the time is work of the host. If its result goes to
the device next, it makes a batch.
"""

import numpy as np

from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.knowledge.catalogue import first_match, host_operator_patterns
from tb_bottleneck.order_statistics import distinct_values
from tb_bottleneck.record import Record
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Dispatching one operator costs 1 to 5 us, and up to 80 us in slow recordings. In thirty public recordings of devices,
# the operators above 100 us without a runtime call fill, copy or compute tensors of the host; the others are those that
# knowledge/operators.toml lists as describing tensors.
SHORTEST_HOST_WORK_NS = 100_000
CREATES = "creates"
"""What an operator does that writes constant or random values (knowledge/operators.toml)."""


class HostOperators(Record, frozen=True, eq=False):
    """Operators that compute on the host; `makes_batch` marks those whose result is uploaded next."""

    rows: Rows
    start: Ints
    end: Ints
    makes_batch: Bools

    def spans(self, makes_batch: bool) -> Spans:
        """Returns the time of the operators that make a batch, or of the others."""
        chosen = self.makes_batch == makes_batch
        return union(self.start[chosen], self.end[chosen])


def host_operators_of(trace: Trace, threads: Ints, fetches: Spans) -> HostOperators:
    """Finds the operators of the threads that launch work.

    `fetches` is the time in which they wait for batches; operators in it belong to the loader. If no call or no device
    work was recorded, none is found: nothing shows which operators launch.
    """
    events = trace.events
    rows = trace.rows(Kind.CPU_OP)
    if not len(trace.calls) or not len(trace.all_device_ops):
        rows = rows[:0]
    rows = rows[events.duration[rows] >= SHORTEST_HOST_WORK_NS]
    rows = rows[np.isin(events.thread[rows], threads)]
    rows = rows[name_matches(trace.names, events.name[rows], _computes)]
    rows = rows[~fetches.contains(events.start[rows]) & ~_calls_inside(trace, rows)]
    start, end = events.start[rows], events.end[rows]
    return HostOperators(rows, start, end, _uploaded_next(trace, threads, end, fetches))


def _computes(name: str) -> bool:
    return first_match(host_operator_patterns(), name) in ("computes", CREATES)


def _calls_inside(trace: Trace, rows: Rows) -> Bools:
    """Returns a mask of the operators in which their thread makes a runtime call."""
    events, calls = trace.events, trace.calls
    inside = np.zeros(len(rows), np.bool_)
    for thread in distinct_values(events.thread[rows]).tolist():
        own = events.thread[rows] == thread
        begins = np.sort(calls.start[calls.thread == thread])
        first = np.searchsorted(begins, events.start[rows[own]], side="left")
        inside[own] = np.searchsorted(begins, events.end[rows[own]], side="left") > first
    return inside


def _uploaded_next(trace: Trace, threads: Ints, times: Ints, fetches: Spans) -> Bools:
    """Returns a mask: True if the first work for the device after a time is an upload, and no fetch comes between."""
    calls, ops = trace.calls, trace.all_device_ops
    uploads = np.zeros(len(calls), np.bool_)
    uploads[ops.call[ops.launched & (ops.work == Work.UPLOAD)]] = True
    issues = np.flatnonzero(np.isin(calls.role, (Role.LAUNCH, Role.FILL, Role.COPY)) & np.isin(calls.thread, threads))
    issues = issues[np.argsort(calls.start[issues], kind="stable")]
    following = np.searchsorted(calls.start[issues], times, side="left")
    exists = following < len(issues)
    call = issues[np.minimum(following, len(issues) - 1)] if len(issues) else np.zeros(len(times), np.int64)
    fetch = np.searchsorted(fetches.starts, times, side="left")
    fetched = fetch < np.searchsorted(fetches.starts, np.where(exists, calls.start[call], times), side="left")
    return np.asarray(exists & uploads[call] & ~fetched, np.bool_)
