"""Measures of the data loader, as the training thread sees it. Worker processes never appear in a trace."""

import math

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import clip, union
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.window import with_example
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Rows

NO_LOADER = Missing("no DataLoader iteration was recorded")
_ITERATIONS = ("enumerate(DataLoader)#", "enumerate(DataPipe)#")
SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"


def loader_fetch(recording: Recording) -> Measure | Missing:
    """Time per step that the training thread spends in DataLoader.__next__, whatever the device does meanwhile."""
    rows = fetches(recording)
    if not len(rows):
        return NO_LOADER
    events = recording.trace.events
    host = recording.steps.host
    spans = clip(union(events.start[rows], events.end[rows]), int(host[0]), int(host[-1]))
    return with_example(spans.total() / len(recording.steps), "ns", "step", events.start[rows], events.end[rows])


def loader_idle(recording: Recording) -> Measure | Missing:
    """Time per step that the device is idle while the training thread is in the loader."""
    if not recording.on_device:
        return loader_fetch(recording)
    idle, gaps = recording.gaps.by_activity[:, Activity.LOAD_BATCH], recording.gaps
    if not idle.any():
        return Measure(0.0, "ns", "step", 0)
    longest = int(np.argmax(idle))
    begin, end = int(gaps.begin[longest]), int(gaps.end[longest])
    return Measure(float(idle.sum()) / len(recording.steps), "ns", "step", int((idle > 0).sum()), begin=begin, end=end)


def workers_needed(recording: Recording) -> Measure | Missing:
    """Workers that would deliver as fast as the rest of the step uses batches, for a loader in the training process.

    Time to make a batch / time of the step without waiting for it, rounded up; at most the cores of the job.
    """
    fetch, idle = loader_fetch(recording), loader_idle(recording)
    if isinstance(fetch, Missing) or isinstance(idle, Missing):
        return NO_LOADER
    needed = math.ceil(fetch.value / max(_step_without(recording, idle.value), 1.0))
    return Measure(float(max(min(needed, _cores(recording) or needed), 1)), "count", "process", fetch.count)


def workers_factor(recording: Recording) -> Measure | Missing:
    """How many times as many workers would keep up: time of the step / time of the step without waiting, rounded up."""
    idle = loader_idle(recording)
    if isinstance(idle, Missing):
        return NO_LOADER
    step = recording.account.window / len(recording.steps)
    factor = math.ceil(step / max(_step_without(recording, idle.value), 1.0))
    return Measure(float(max(min(factor, _cores(recording) or factor), 2)), "count", "", idle.count)


def cores_available(recording: Recording) -> Measure | Missing:
    """Cores that the job really has, for workers to run on."""
    found = _cores(recording)
    if found is None:
        return Missing("the run's context was not recorded; tb_bottleneck.monitor.facts.process adds it to the trace")
    return Measure(float(found), "count", "process", source="context")


def loader_iterator(recording: Recording) -> Measure | Missing:
    """The kind of iterator: `_SingleProcessDataLoaderIter` loads in the training process, the other one in workers."""
    rows = fetches(recording)
    for name in np.unique(recording.trace.events.name[rows]).tolist():
        text = recording.trace.names[name]
        for kind in (SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR):
            if kind in text:
                return text_measure(kind, len(rows))
    return Missing("the loader's iterator is not named in the recording")


def fetches(recording: Recording) -> Rows:
    """Fetches of the whole recording; one may begin before the window and reach into it."""
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(_ITERATIONS))]


def _step_without(recording: Recording, idle: float) -> float:
    return recording.account.window / len(recording.steps) - idle


def _cores(recording: Recording) -> int | None:
    cores = recording.trace.header.context.get("cores")
    return int(cores) if isinstance(cores, int | float) and 1 <= cores < 1e6 else None
