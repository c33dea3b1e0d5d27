"""Selects the rows of a recording that belong to its window (the analysed steps), as input of measures.

Device work is selected by the time at which it runs. Host work is selected by the times of the steps on the host ("the
host's steps"), which can be earlier: the host may finish all of its steps before the device starts the first step.
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace


def device_work(recording: Recording, *works: Work) -> DeviceOps:
    """Returns the device operations that run in the window and whose kind of work is one of `works`."""
    return recording.trace.device_ops.take(in_window(recording, *works))


def in_window(recording: Recording, *works: Work) -> Bools:
    """Returns a mask of the trace's device operations: True for an operation of one of the kinds `works` that runs in
    the window."""
    ops = recording.trace.device_ops
    rows = np.isin(ops.work, works) & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end)
    return np.asarray(rows, np.bool_)


def host_calls(recording: Recording, *roles: Role) -> Calls:
    """Returns the calls with one of the roles `roles` that begin in the host's steps."""
    calls = recording.trace.calls.of(*roles)
    return calls.take(in_host_steps(recording, calls.start))


def in_host_steps(recording: Recording, times: Ints) -> Bools:
    """Returns a mask of `times` (ns): True for each time from the start of the host's first step to the end of its last
    step."""
    return np.asarray((times >= recording.steps.host[0]) & (times < recording.steps.host[-1]), np.bool_)


def host_rows(recording: Recording, test: Callable[[str], bool], *kinds: Kind) -> Rows:
    """Returns the event rows of the kinds `kinds` that overlap the host's steps and for whose name `test` returns
    True."""
    trace, events, host = recording.trace, recording.trace.events, recording.steps.host
    rows = trace.rows(*kinds)
    rows = rows[name_matches(trace.names, events.name[rows], test)]  # first, because few names pass `test`
    overlapping: Rows = rows[(events.end[rows] > host[0]) & (events.start[rows] < host[-1])]
    return overlapping


def host_step_of(recording: Recording, times: Ints) -> Ints:
    """Returns for each of `times` (ns) the index of the host's step that contains it; -1 before the first step,
    len(steps) after the last step."""
    return np.asarray(np.searchsorted(recording.steps.host, times, side="right") - 1, np.int64)


def window_share(recording: Recording, begin: Ints, end: Ints) -> Measure:
    """Returns the share of the window that the intervals [begin[i], end[i]) in ns cover. Intervals may overlap."""
    covered = int(union(begin, end).covered(recording.steps.begin, recording.steps.end))
    return with_example(covered / recording.account.window, "share", "window", begin, end)


def with_example(value: float, unit: str, per: str, begin: Ints, end: Ints) -> Measure:
    """Returns `value` as a measure that has the times of one occurrence as an example: the occurrence of median length.

    `begin` and `end` have the times in ns of all occurrences; their number is the measure's `count`. `per` is what the
    value refers to, for example step or window.
    """
    if not len(begin):
        return Measure(value, unit, per, 0)
    typical = int(np.argsort(end - begin, kind="stable")[len(begin) // 2])
    return Measure(value, unit, per, len(begin), begin=int(begin[typical]), end=int(end[typical]))


_ITERATIONS = ("enumerate(DataLoader)#", "enumerate(DataPipe)#")


@memoized
def fetches(recording: Recording) -> Rows:
    """Returns the event rows in which the training loop takes a batch from a DataLoader or DataPipe ("fetches").

    Rows outside the window are included, because a fetch that begins before the window may end in it.
    """
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(_ITERATIONS))]


def launches_without_work(trace: Trace, steps: Steps) -> float:
    """Returns the share (0 to 1) of the window's launching calls for which no device work was recorded.

    A window without steps ends with the last device operation. In this case, later calls count too, since a profiler
    that runs out of buffers loses the end of the recording.
    """
    ops, calls = trace.all_device_ops, trace.calls
    has_work = np.zeros(len(calls), np.bool_)
    has_work[ops.call[ops.launched]] = True
    launching = (calls.role == Role.LAUNCH) & (calls.start >= steps.host[0])
    if steps.basis != "whole":
        launching &= calls.start < steps.host[-1]
    return float((~has_work[launching]).mean()) if launching.any() else 0.0
