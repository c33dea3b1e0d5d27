"""Measures of the host outside the data loader: launches, calls, operators, and pauses in Python.

Host operators are operators that compute on the host although the run has a device (attribution/host_operators.py).
Some host operators make batches; their time belongs to the regime `input`.
"""

from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.host_operators import CREATES
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_model
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import first_match, host_operator_patterns
from tb_bottleneck.measures.trace.window_rows import host_calls, in_host_steps, with_example
from tb_bottleneck.measures.user_code.places import HostTimes, Place, located, places_at
from tb_bottleneck.trace.kernel_names import cut, name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Rows

_CPU_RUN = Missing("the work ran on the CPU: all operators compute there")
_NONE = Missing("no operator computed on the host for long")
MAX_NAMES_LISTED = 3
TRACED_LEFT = 0.22
"""Time of Python without a tracer / with it: the median of three loops under a tracer of calls, of lines,
sys.setprofile and cProfile, each timed in turns (0.12 to 0.37; CPython 3.11, one core of an AMD EPYC)."""


def host_operator_share(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle while operators compute on the host, other than operators that
    make batches."""
    if not recording.on_device:
        return _CPU_RUN
    idle = recording.gaps.by_activity.of(Activity.COMPUTE)
    return Measure(float(idle.sum()) / recording.account.window, "share", "window", int((idle > 0).sum()))


def host_operator_time(recording: Recording) -> Measure | Missing:
    """Time per step (ns) in which the device is idle while operators compute on the host, other than operators that
    make batches."""
    if not recording.on_device:
        return _CPU_RUN
    gaps = recording.gaps
    idle = gaps.by_activity.of(Activity.COMPUTE)
    late = np.flatnonzero(idle > 0)
    per_step = float(idle.sum()) / len(recording.steps)
    return with_example(per_step, "ns", "step", gaps.begin[late], gaps.end[late])


def host_operators(recording: Recording) -> Measure | Missing:
    """The names of the operators that compute on the host, other than operators that make batches, longest first, as
    text."""
    if not recording.on_device:
        return _CPU_RUN
    names, count = operator_names(recording, makes_batch=False)
    return text_measure(", ".join(names), count) if names else _NONE


def batch_operator_share(recording: Recording) -> Measure | Missing:
    """Of the time in which the device is idle because it waits for a batch: the share in which operators of the
    training loop make batches on the host.

    Operators inside fetches of a DataLoader do not count.
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
    """Of the time of host operators that make batches: the share in operators that write constant or random values,
    such as torch.randn."""
    if not recording.on_device:
        return _CPU_RUN
    rows = _innermost(recording, makes_batch=True)
    if not len(rows):
        return _NONE
    events = recording.trace.events
    creates = name_matches(
        recording.trace.names, events.name[rows], lambda name: first_match(host_operator_patterns(), name) == CREATES
    )
    spent = events.duration[rows]
    return Measure(float(spent[creates].sum() / spent.sum()), "share", "batch operators", int(creates.sum()))


def operator_names(recording: Recording, makes_batch: bool) -> tuple[list[str], int]:
    """Returns the names of the MAX_NAMES_LISTED host operators with the most time in the window, and the number of
    calls of all host operators.

    Only operators that make batches are considered if `makes_batch` is True, otherwise only the others. An operator
    that calls another host operator is left out.
    """
    events, rows = recording.trace.events, _innermost(recording, makes_batch)
    if not len(rows):
        return [], 0
    names, which = np.unique(events.name[rows], return_inverse=True)
    longest = np.argsort(-np.bincount(which, weights=events.duration[rows]), kind="stable")[:MAX_NAMES_LISTED]
    return [cut(recording.trace.names[name]) for name in names[longest].tolist()], len(rows)


def _innermost(recording: Recording, makes_batch: bool) -> Rows:
    """Returns the event rows of those host operators of the window that do not call another host operator.
    `makes_batch` is as in `operator_names`."""
    events, operators = recording.trace.events, recording.host.host_operators
    chosen = in_host_steps(recording, operators.start) & (operators.makes_batch == makes_batch)
    rows = operators.rows[chosen]
    calls_next = np.append(events.start[rows[1:]] < events.end[rows[:-1]], False)[: len(rows)]
    return np.asarray(rows[~calls_next], rows.dtype)


_HOST_DISPATCH_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
MIN_STEPS_FOR_PAUSES = 3
LONG_PAUSE_SHARE = 0.5
# A loop over the items of a small batch reads at least as many values. Reading the metrics of a step needs fewer. Our
# own limit.
MIN_VALUES_READ = 10
MAX_OPERATORS_LISTED, MAX_CALLS_LOCATED = 30, 100


def frequent_operators(recording: Recording) -> list[tuple[str, int, Place | None]]:
    """Returns the MAX_OPERATORS_LISTED most frequent operators of the window as (name, number of calls, place).

    The place is where the user's program makes most of these calls; None if the place is not known.
    """
    events, rows = recording.trace.events, recording.trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    names, counts = np.unique(events.name[rows], return_counts=True)
    most = np.argsort(-counts, kind="stable")[:MAX_OPERATORS_LISTED]
    of_name = [rows[events.name[rows] == names[at]] for at in most]
    samples = [own[:: -(-len(own) // MAX_CALLS_LOCATED)] for own in of_name]
    calls = np.concatenate([*samples, rows[:0]])
    calls_at = located(recording, HostTimes(events.thread[calls], events.start[calls], np.ones(len(calls))))
    ends = np.cumsum([len(own) for own in samples])
    found = []
    for at, own, end in zip(most.tolist(), samples, ends.tolist(), strict=True):
        places = places_at(recording, calls_at.take(np.arange(end - len(own), end)), np.ones(len(own)))
        found.append((cut(recording.trace.names[names[at]]), int(counts[at]), next(iter(places), None)))
    return found


def time_per_launch(recording: Recording) -> Measure | Missing:
    """Time of the window / number of launching calls (ns); missing if graphs are replayed."""
    calls = host_calls(recording, Role.LAUNCH)
    if not len(calls):
        return _HOST_DISPATCH_CPU_RUN
    if name_matches(recording.trace.names, calls.name, lambda name: "GraphLaunch" in name).any():
        return Missing("graphs are replayed, and one call launches all kernels of a graph")
    gaps = recording.gaps
    late = np.flatnonzero(gaps.by_activity.of(Activity.DISPATCH) > 0)
    begin, end = (gaps.begin[late], gaps.end[late]) if len(late) else (calls.start, calls.end)
    return replace(with_example(recording.account.window / len(calls), "ns", "call", begin, end), count=len(calls))


def runtime_calls(recording: Recording) -> Measure | Missing:
    """Calls of the runtime and the driver (such as CUDA) per step, including calls that wait."""
    calls = recording.trace.calls
    if not recording.on_device:
        return _HOST_DISPATCH_CPU_RUN
    if not len(calls):
        return Missing("no runtime calls were recorded, so waits and allocations are not visible")
    count = int(in_host_steps(recording, calls.start).sum())
    return Measure(count / len(recording.steps), "count", "step", count)


def host_rows_recorded(recording: Recording) -> Measure | Missing:
    """1 if operators, annotations or frames of the host were recorded, or on a CPU run (count); missing otherwise."""
    if recording.on_device and not recording.host.recorded:
        return Missing("neither operators nor annotations were recorded; ProfilerActivity.CPU records them")
    return Measure(1.0, "count", "recording")


def models(recording: Recording) -> Measure | Missing:
    """1 if layers of a model or a training were recorded, otherwise 0 (count)."""
    return Measure(float(has_model(recording.trace)), "count", "recording")


def operators(recording: Recording) -> Measure | Missing:
    """Number of operators per step, including operators that other operators call."""
    rows = recording.trace.rows(Kind.CPU_OP)
    count = int(in_host_steps(recording, recording.trace.events.start[rows]).sum())
    return (
        Measure(count / len(recording.steps), "count", "step", count) if count else Missing("no operator was recorded")
    )


def values_read_singly(recording: Recording) -> Measure | Missing:
    """Calls of aten::item per step, each of which reads one value; missing if there are fewer than MIN_VALUES_READ per
    step."""
    rows = recording.trace.rows(Kind.CPU_OP)
    events = recording.trace.events
    read = rows[name_matches(recording.trace.names, events.name[rows], lambda name: name == "aten::item")]
    count = int(in_host_steps(recording, events.start[read]).sum())
    if count < MIN_VALUES_READ * len(recording.steps):
        return Missing("few values are read one by one")
    return Measure(count / len(recording.steps), "count", "step", count)


def longest_host_pause(recording: Recording) -> Measure | Missing:
    """The longest interval of the window (ns) in which the device is idle while Python outside torch runs."""
    spans = _python_time(recording)
    if not len(spans):
        return Measure(0.0, "ns", "window", 0)
    longest = int(np.argmax(spans.ends - spans.starts))
    begin, end = int(spans.starts[longest]), int(spans.ends[longest])
    return Measure(float(end - begin), "ns", "window", len(spans), begin=begin, end=end)


def idle_before_first_work(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle before the first work of any device, while Python or the host's
    operators run.

    The share is 0 if the recording is divided into steps.
    """
    if not recording.on_device:
        return _HOST_DISPATCH_CPU_RUN
    gaps = recording.gaps
    early = (gaps.end <= recording.trace.all_device_ops.start.min()) & (recording.steps.basis == "whole")
    idle = gaps.by_activity[early].total(Activity.COMPUTE, Activity.OTHER)
    share = float(idle.sum()) / recording.account.window
    return with_example(share, "share", "window", gaps.begin[early], gaps.end[early])


def steps_between_pauses(recording: Recording) -> Measure | Missing:
    """The median number of steps from one step with a long pause to the next; 1 if every step has a long pause.

    The pause of a step is the time in which Python keeps the device idle. A pause is long if it takes more than half
    (LONG_PAUSE_SHARE) of the time of the longest pause.
    """
    spans, edges = _python_time(recording), recording.steps.edges
    if len(recording.steps) < MIN_STEPS_FOR_PAUSES or not len(spans):
        return Missing("too few steps were recorded to know how often these pauses occur")
    idle = spans.covered(edges[:-1], edges[1:])
    paused = np.flatnonzero(idle > LONG_PAUSE_SHARE * idle.max())
    if len(paused) < 2:
        return Missing(f"the pause occurred once in {len(recording.steps)} steps; record more steps to know how often")
    return Measure(float(np.median(np.diff(paused))), "count", "pause", len(paused))


def _python_time(recording: Recording) -> Spans:
    """Returns the time in which the device is idle while Python outside torch runs."""
    return recording.owned_spans.of(Regime.HOST)
