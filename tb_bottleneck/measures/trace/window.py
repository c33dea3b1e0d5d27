"""What of a recording lies in its window: the rows that measures are taken from.

Device work is taken by when it runs. What the host does belongs to the steps that the host was in: it may be done with
all of them before the device begins with the first.
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools, Ints, Rows


def device_work(recording: Recording, *works: Work) -> DeviceOps:
    """Device operations that run in the window, of these kinds."""
    ops = recording.trace.device_ops
    rows: Bools = np.isin(ops.work, works) & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end)
    return ops.take(rows)


def host_calls(recording: Recording, *roles: Role) -> Calls:
    """Calls of the host's steps, of these roles."""
    calls = recording.trace.calls.of(*roles)
    return calls.take(in_host_steps(recording, calls.start))


def in_host_steps(recording: Recording, times: Ints) -> Bools:
    """Which of these times lie in the host's steps."""
    return np.asarray((times >= recording.steps.host[0]) & (times < recording.steps.host[-1]), np.bool_)


def host_rows(recording: Recording, test: Callable[[str], bool], *kinds: Kind) -> Rows:
    """Rows of the host that reach into its steps, of these kinds, whose names pass a test."""
    trace, events, host = recording.trace, recording.trace.events, recording.steps.host
    rows = trace.rows(*kinds)
    rows = rows[(events.end[rows] > host[0]) & (events.start[rows] < host[-1])]
    names = events.name[rows]
    wanted = np.zeros(len(trace.names), np.bool_)
    for name in np.flatnonzero(np.bincount(names)).tolist():
        wanted[name] = test(trace.names[name])
    named: Rows = rows[wanted[names]]
    return named


def host_step_of(recording: Recording, times: Ints) -> Ints:
    """For each time the step that the host was in; -1 and the number of steps outside of them."""
    return np.asarray(np.searchsorted(recording.steps.host, times, side="right") - 1, np.int64)


def with_example(value: float, unit: str, per: str, begin: Ints, end: Ints) -> Measure:
    """A measure that points at the occurrence of median length; `count` is how many occurrences there are."""
    if not len(begin):
        return Measure(value, unit, per, 0)
    typical = int(np.argsort(end - begin, kind="stable")[len(begin) // 2])
    return Measure(value, unit, per, len(begin), begin=int(begin[typical]), end=int(end[typical]))
