"""Measures of the data loader, as the training thread sees it. Worker processes never appear in a trace."""

import math

import numpy as np

from tb_bottleneck.intervals import clip, union
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
    spans = clip(union(events.start[rows], events.end[rows]), recording.steps.begin, recording.steps.end)
    typical = rows[np.argsort(events.duration[rows])[len(rows) // 2]]
    begin, end = int(events.start[typical]), int(events.end[typical])
    return Measure(spans.total() / len(recording.steps), "ns", "step", len(rows), begin=begin, end=end)


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


def workers_needed(recording: Recording) -> Measure | Missing:
    """Workers that would deliver as fast as the rest of the step uses batches, for a loader in the training process.

    ceil(time to make a batch / time of the step without the loader), at most the cores that the job has, where known.
    """
    fetch, idle = loader_fetch(recording), loader_idle(recording)
    if isinstance(fetch, Missing) or isinstance(idle, Missing):
        return _NO_LOADER
    step = recording.account.window / len(recording.steps)
    needed = math.ceil(fetch.value / max(step - idle.value, 1.0))
    cores = recording.trace.header.context.get("cores")
    limit = int(cores) if isinstance(cores, int | float) and cores >= 1 else needed
    return Measure(float(max(min(needed, limit), 1)), "count", "process", fetch.count)


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
    """Fetches of the whole recording; one may begin before the window and reach into it."""
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    wanted = trace.names_where(lambda name: name.startswith(("enumerate(DataLoader)#", "enumerate(DataPipe)#")))
    return rows[np.isin(trace.events.name[rows], wanted)]
