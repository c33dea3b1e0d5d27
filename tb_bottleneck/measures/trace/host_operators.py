"""Measures of operators that compute on the host although the run has a device (attribution/host/host_operators.py)."""

import numpy as np

from tb_bottleneck.attribution.host.host_operators import CREATES
from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.catalogue import first_match, host_operator_patterns
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.window import in_host_steps, with_example
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Rows

_CPU_RUN = Missing("the work ran on the CPU: all operators compute there")
_NONE = Missing("no operator computed on the host for long")
MAX_NAMES_LISTED = 3


def host_operator_share(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle while operators compute on the host, batches excepted."""
    if not recording.on_device:
        return _CPU_RUN
    idle = recording.gaps.by_activity.of(Activity.COMPUTE)
    return Measure(float(idle.sum()) / recording.account.window, "share", "window", int((idle > 0).sum()))


def host_operator_time(recording: Recording) -> Measure | Missing:
    """Time per step in which operators compute on the host and the device is idle, batches excepted."""
    if not recording.on_device:
        return _CPU_RUN
    gaps = recording.gaps
    idle = gaps.by_activity.of(Activity.COMPUTE)
    late = np.flatnonzero(idle > 0)
    per_step = float(idle.sum()) / len(recording.steps)
    return with_example(per_step, "ns", "step", gaps.begin[late], gaps.end[late])


def host_operators(recording: Recording) -> Measure | Missing:
    """The names of operators that compute on the host, batches excepted, longest first."""
    if not recording.on_device:
        return _CPU_RUN
    names, count = operator_names(recording, makes_batch=False)
    return text_measure(", ".join(names), count) if names else _NONE


def batch_operator_share(recording: Recording) -> Measure | Missing:
    """Share of the device's idle time for batches in which operators of the loop compute them on the host.

    Operators inside the loader's own fetches do not count.
    """
    if not recording.on_device:
        return _CPU_RUN
    gaps = recording.gaps
    idle = gaps.by_activity.of(Activity.LOAD_BATCH)
    late = np.flatnonzero(idle > 0)
    if not len(late):
        return Missing("the device was not idle for a batch")
    made = recording.host.host_operators.spans(makes_batch=True)
    inside = made.covered(gaps.begin[late], gaps.end[late])
    return Measure(float(np.minimum(inside, idle[late]).sum() / idle.sum()), "share", "loader time", len(late))


def created_share(recording: Recording) -> Measure | Missing:
    """Share of the time of the operators that make batches in those that write constant or random values."""
    if not recording.on_device:
        return _CPU_RUN
    rows = _outermost(recording, makes_batch=True)
    if not len(rows):
        return _NONE
    events = recording.trace.events
    creates = name_matches(
        recording.trace.names, events.name[rows], lambda name: first_match(host_operator_patterns(), name) == CREATES
    )
    spent = events.duration[rows]
    return Measure(float(spent[creates].sum() / spent.sum()), "share", "batch operators", int(creates.sum()))


def operator_names(recording: Recording, makes_batch: bool) -> tuple[list[str], int]:
    """Returns the names of the window's host operators, longest first and at most three, and their number.

    An operator that calls another one of them is left out.
    """
    events, rows = recording.trace.events, _outermost(recording, makes_batch)
    if not len(rows):
        return [], 0
    names, which = np.unique(events.name[rows], return_inverse=True)
    longest = np.argsort(-np.bincount(which, weights=events.duration[rows]), kind="stable")[:MAX_NAMES_LISTED]
    return [cut(recording.trace.names[name]) for name in names[longest].tolist()], len(rows)


def _outermost(recording: Recording, makes_batch: bool) -> Rows:
    """Returns the rows of the window's host operators without those that call another one of them."""
    events, operators = recording.trace.events, recording.host.host_operators
    chosen = in_host_steps(recording, operators.start) & (operators.makes_batch == makes_batch)
    rows = operators.rows[chosen]
    calls_next = np.append(events.start[rows[1:]] < events.end[rows[:-1]], False)[: len(rows)]
    return np.asarray(rows[~calls_next], rows.dtype)
