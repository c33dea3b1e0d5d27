"""Measures of the host: what kept the device waiting outside the loader."""

import numpy as np

from tb_bottleneck.intervals import Spans, clip, complement, merge, union
from tb_bottleneck.knowledge.catalogue import doing_patterns, first_match
from tb_bottleneck.measures.doing import Doing
from tb_bottleneck.measures.measure import Measure, Missing, words
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.calls import Calls, Role
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Rows

_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
_CHECKPOINT_WORDS = ("serialization.py", "checkpoint", "safetensors", "save")
_LOGGING_WORDS = ("tensorboard", "wandb", "mlflow", "matplotlib")


def time_per_launch(recording: Recording) -> Measure | Missing:
    """Time of the window per launching call."""
    calls = _calls(recording, Role.LAUNCH)
    if not len(calls):
        return _CPU_RUN
    return Measure(recording.account.window / len(calls), "ns", "call", len(calls))


def driver_allocations(recording: Recording) -> Measure | Missing:
    """Calls per step that ask the driver for memory or give it back."""
    if not recording.on_device:
        return _CPU_RUN
    return _per_step(recording, _calls(recording, Role.ALLOCATE))


def operators(recording: Recording) -> Measure | Missing:
    """Operators per step, nested ones included."""
    rows = recording.trace.rows(Kind.CPU_OP)
    count = int(recording.in_window(recording.trace.events.start[rows]).sum())
    return (
        Measure(count / len(recording.steps), "count", "step", count) if count else Missing("no operator was recorded")
    )


def longest_host_pause(recording: Recording) -> Measure | Missing:
    """The longest time in the window that Python outside torch kept the device idle."""
    spans = _python_time(recording)
    if not len(spans):
        return Measure(0.0, "ns", "window", 0)
    longest = int(np.argmax(spans.ends - spans.starts))
    begin, end = int(spans.starts[longest]), int(spans.ends[longest])
    return Measure(float(end - begin), "ns", "window", len(spans), begin=begin, end=end)


def checkpoints(recording: Recording) -> Measure | Missing:
    """Time of the window in which a checkpoint is written; `count` is how many."""
    return _interruption(recording, _CHECKPOINT_WORDS)


def loggings(recording: Recording) -> Measure | Missing:
    """Time of the window in which logging writes; `count` is how often."""
    return _interruption(recording, _LOGGING_WORDS)


def collections(recording: Recording) -> Measure | Missing:
    """Time of the window in which Python collects garbage; `count` is how often."""
    return _interruption(recording, ("Python GC",))


def what_interrupts(recording: Recording) -> Measure | Missing:
    """The row that interrupts the steps longest, by name."""
    events, names = recording.trace.events, recording.trace.names
    rows = _interrupting_rows(recording)
    if not len(rows):
        return Missing("no interruption was recorded")
    totals = np.bincount(events.name[rows], weights=events.duration[rows], minlength=len(names))
    return words(names[int(np.argmax(totals))], len(rows))


def _interruption(recording: Recording, wanted: tuple[str, ...]) -> Measure | Missing:
    events, names = recording.trace.events, recording.trace.names
    rows = [row for row in _interrupting_rows(recording) if any(word in names[events.name[row]] for word in wanted)]
    if not rows and not recording.trace.header.stacks_recorded:
        return Missing("Python frames were not recorded; with_stack=True records them")
    spans = clip(union(events.start[rows], events.end[rows]), recording.steps.begin, recording.steps.end)
    typical = rows[len(rows) // 2] if rows else None
    return Measure(
        float(spans.total()),
        "ns",
        "window",
        len(rows),
        begin=int(events.start[typical]) if typical is not None else None,
        end=int(events.end[typical]) if typical is not None else None,
    )


def _interrupting_rows(recording: Recording) -> Rows:
    """Rows that say `interrupt`, the outermost of nested ones."""
    trace, events, steps = recording.trace, recording.trace.events, recording.steps
    patterns = (*doing_patterns("annotation"), *doing_patterns("python"))
    rows = trace.rows(Kind.ANNOTATION, Kind.PYTHON)
    says = np.zeros(len(trace.names), np.bool_)
    for name in np.unique(events.name[rows]).tolist():
        says[name] = first_match(patterns, trace.names[name]) == "interrupt"
    rows = rows[says[events.name[rows]] & (events.end[rows] > steps.begin) & (events.start[rows] < steps.end)]
    reach = np.maximum.accumulate(np.append(np.int64(-(2**62)), events.end[rows]))[:-1]
    return rows[events.start[rows] >= reach]


def _python_time(recording: Recording) -> Spans:
    """When Python outside torch ran with the device idle."""
    if recording.on_device:
        rows = recording.gaps.by_doing[:, Doing.OTHER] > 0
        return Spans(recording.gaps.begin[rows], recording.gaps.end[rows])
    thread = recording.host.main_thread
    busy = (
        []
        if thread is None
        else [spans for doing, spans in recording.host.doings(thread).items() if doing < Doing.OTHER]
    )
    return complement(merge(*busy), recording.steps.begin, recording.steps.end)


def _calls(recording: Recording, *roles: Role) -> Calls:
    calls = recording.trace.calls.of(*roles)
    return calls.take(recording.in_window(calls.start))


def _per_step(recording: Recording, calls: Calls) -> Measure:
    typical = np.argsort(calls.end - calls.start)[len(calls) // 2] if len(calls) else None
    return Measure(
        len(calls) / len(recording.steps),
        "count",
        "step",
        len(calls),
        begin=int(calls.start[typical]) if typical is not None else None,
        end=int(calls.end[typical]) if typical is not None else None,
    )
