"""Measures of the waits that cost something: what in the program waits, and where it stands."""

from collections import Counter

import numpy as np

from tb_bottleneck.measures.doing import Doing
from tb_bottleneck.measures.measure import Measure, Missing, words
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Ints, Rows

_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
_NO_WAIT = Missing("no wait cost anything")
_NO_STACKS = Missing("Python frames were not recorded; with_stack=True names the lines")
# Operators that read one value of the device.
READS_SCALAR = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero")
SHOWN = 3


def costly_waits(recording: Recording) -> Measure | Missing:
    """Waits per step behind which the device idled."""
    if not recording.on_device:
        return _CPU_RUN
    rows = _costly(recording)
    waits, calls = recording.gaps.waits, recording.trace.calls
    if not len(rows):
        return Measure(0.0, "count", "step", 0)
    dearest = waits.call[rows[np.argmax(waits.charged[rows])]]
    begin, end = int(calls.start[dearest]), int(calls.end[dearest])
    return Measure(len(rows) / len(recording.steps), "count", "step", len(rows), begin=begin, end=end)


def idle_in_waits(recording: Recording) -> Measure | Missing:
    """Time per step that the device is idle inside a wait, before the host goes on."""
    if not recording.on_device:
        return _CPU_RUN
    return Measure(float(recording.gaps.by_doing[:, Doing.WAIT].sum()) / len(recording.steps), "ns", "step")


def waiting_operators(recording: Recording) -> Measure | Missing:
    """The operators inside which the costly waits happen, the commonest first."""
    names = _operators_around(recording) if recording.on_device else []
    return _commonest(names) if names else _CPU_RUN if not recording.on_device else _NO_WAIT


def scalar_reads(recording: Recording) -> Measure | Missing:
    """Share of the costly waits that read one value: .item(), float(), if tensor."""
    names = _operators_around(recording) if recording.on_device else []
    if not names:
        return _NO_WAIT if recording.on_device else _CPU_RUN
    return Measure(sum(name in READS_SCALAR for name in names) / len(names), "share", "waits", len(names))


def waiting_lines(recording: Recording) -> Measure | Missing:
    """The user's lines that wait, as `file.py(line): function`, the commonest first. Lines inside torch are no use."""
    if not recording.trace.header.stacks_recorded:
        return _NO_STACKS
    rows = _costly(recording) if recording.on_device else np.empty(0, np.intp)
    calls = (
        recording.trace.calls.take(recording.gaps.waits.call[rows]) if len(rows) else recording.trace.calls.take(rows)
    )
    frames = [_user_frame(recording, *at) for at in zip(calls.thread.tolist(), calls.start.tolist(), strict=True)]
    lines = [frame for frame in frames if frame]
    return _commonest(lines) if lines else _NO_WAIT


def _costly(recording: Recording) -> Rows:
    """Rows of the waits in the window that were charged."""
    waits = recording.gaps.waits
    return np.flatnonzero(recording.in_window(waits.over) & (waits.charged > 0))


def _operators_around(recording: Recording) -> list[str]:
    """For each costly wait the innermost operator around its call; the call's own name where none is."""
    trace = recording.trace
    calls = trace.calls.take(recording.gaps.waits.call[_costly(recording)])
    around = calls.name.copy()
    for thread in np.unique(calls.thread).tolist():
        rows = _rows(recording, Kind.CPU_OP, thread)
        mine = np.flatnonzero(calls.thread == thread)
        if len(rows):
            found, row = nest(trace.events.start[rows], trace.events.end[rows]).innermost(calls.start[mine])
            around[mine[found]] = trace.events.name[rows[row[found]]]
    return [trace.names[name] for name in around.tolist()]


def _user_frame(recording: Recording, thread: int, at: int) -> str:
    """The innermost Python frame at a time that is neither torch's nor built in; empty where there is none."""
    trace = recording.trace
    rows = _rows(recording, Kind.PYTHON, thread)
    around = rows[(trace.events.start[rows] <= at) & (trace.events.end[rows] > at)]
    frames = [trace.names[name] for name in trace.events.name[around][::-1].tolist()]
    return next((frame for frame in frames if ".py(" in frame and not frame.startswith(("torch/", "<"))), "")


def _commonest(found: list[str]) -> Measure:
    most = Counter(found).most_common(SHOWN)
    return words(", ".join(f"{name} ({count}x)" for name, count in most), len(found))


def _rows(recording: Recording, kind: Kind, thread: int) -> Ints:
    rows = recording.trace.rows(kind)
    return np.asarray(rows[recording.trace.events.thread[rows] == thread], np.int64)
