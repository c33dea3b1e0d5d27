"""Measures of the data loader, as the training thread sees it. Worker processes never appear in a trace."""

import numpy as np

from tb_bottleneck.intervals import union
from tb_bottleneck.measures.doing import Doing
from tb_bottleneck.measures.measure import Measure, Missing, words
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Rows

_NO_LOADER = Missing("no DataLoader iteration was recorded")


def loader_fetch(recording: Recording) -> Measure | Missing:
    """Time per step that the training thread spends in DataLoader.__next__, whatever the device does meanwhile."""
    rows = _fetches(recording)
    if not len(rows):
        return _NO_LOADER
    events = recording.trace.events
    total = union(events.start[rows], events.end[rows]).total()
    typical = rows[np.argsort(events.duration[rows])[len(rows) // 2]]
    begin, end = int(events.start[typical]), int(events.end[typical])
    return Measure(total / len(recording.steps), "ns", "step", len(rows), begin=begin, end=end)


def loader_idle(recording: Recording) -> Measure | Missing:
    """Time per step that the device is idle while the training thread is in the loader."""
    if not recording.on_device:
        return loader_fetch(recording)
    idle, gaps = recording.gaps.by_doing[:, Doing.LOAD], recording.gaps
    if not idle.any():
        return Measure(0.0, "ns", "step", 0)
    longest = int(np.argmax(idle))
    begin, end = int(gaps.begin[longest]), int(gaps.end[longest])
    return Measure(float(idle.sum()) / len(recording.steps), "ns", "step", int((idle > 0).sum()), begin=begin, end=end)


def loader_iterator(recording: Recording) -> Measure | Missing:
    """The kind of iterator: `_SingleProcessDataLoaderIter` loads in the training process, the other one in workers."""
    rows = _fetches(recording)
    for name in np.unique(recording.trace.events.name[rows]).tolist():
        text = recording.trace.names[name]
        for kind in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            if kind in text:
                return words(kind, len(rows))
    return Missing("the loader's iterator is not named in the recording")


def _fetches(recording: Recording) -> Rows:
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    wanted = trace.names_where(lambda name: name.startswith(("enumerate(DataLoader)#", "enumerate(DataPipe)#")))
    rows = rows[np.isin(trace.events.name[rows], wanted)]
    return rows[recording.in_window(trace.events.start[rows])]
