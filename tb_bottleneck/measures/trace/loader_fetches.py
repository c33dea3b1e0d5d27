"""Measures of single fetches from the loader: whether some take far longer than others, and whether they read files."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import intersect, union
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match, frame_patterns
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.loader import NO_LOADER, WORKER_ITERATOR, fetches, loader_iterator
from tb_bottleneck.measures.trace.window import host_rows, in_host_steps, with_example
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows

# A fetch is slow from this many times the median on (the method's rule for outliers), and not for less than a
# millisecond: a fetch from a ready queue takes well under that.
SLOW_TIMES, SLOW_NS = 3.0, 1_000_000
# One slow fetch may be an epoch's first; fewer fetches than these tell no usual one.
MIN_SLOW, MIN_FETCHES = 2, 6
# Workers that are too few deliver in bursts: a long wait comes regularly, once per round of workers. Waits whose
# distances vary by more than this, relative to their mean, do not come from that.
IRREGULAR = 0.5
MAX_FRAMES_LISTED = 3


def usual_fetch(recording: Recording) -> Measure | Missing:
    """The median time of a fetch."""
    events, rows = recording.trace.events, _whole_fetches(recording)
    if not len(rows):
        return NO_LOADER
    return with_example(float(np.median(events.duration[rows])), "ns", "fetch", events.start[rows], events.end[rows])


def slowest_fetch(recording: Recording) -> Measure | Missing:
    """The longest fetch."""
    events, rows = recording.trace.events, _whole_fetches(recording)
    if not len(rows):
        return NO_LOADER
    slowest = rows[np.argmax(events.duration[rows])]
    begin, end = int(events.start[slowest]), int(events.end[slowest])
    return Measure(float(end - begin), "ns", "fetch", len(rows), begin=begin, end=end)


def uneven_fetches(recording: Recording) -> Measure | Missing:
    """Share of the loader's time that slow fetches take beyond a usual one; 0 where their rhythm is that of workers."""
    rows = _whole_fetches(recording)
    if len(rows) < MIN_FETCHES:
        return NO_LOADER if not len(rows) else Missing("too few fetches were recorded to tell an unusual one")
    length = recording.trace.events.duration[rows]
    usual = float(np.median(length))
    slow = np.flatnonzero((length > SLOW_TIMES * usual) & (length > SLOW_NS))
    iterator = loader_iterator(recording)
    in_workers = isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR
    if len(slow) < MIN_SLOW or (in_workers and not _irregular(slow)):
        return Measure(0.0, "share", "loader time", len(slow))
    beyond = float(length[slow].sum()) - usual * len(slow)
    return Measure(beyond / float(length.sum()), "share", "loader time", len(slow))


def loader_reads(recording: Recording) -> Measure | Missing:
    """Share of the loader's time on the training thread in frames that read files or receive from a network."""
    if not recording.trace.header.stacks_recorded:
        return Missing("Python frames were not recorded; with_stack=True shows what the loader does")
    events, rows = recording.trace.events, _whole_fetches(recording)
    loading = union(events.start[rows], events.end[rows])
    if not len(loading):
        return NO_LOADER
    frames = host_rows(recording, lambda name: first_match(frame_patterns(), name) == "read", Kind.PYTHON)
    frames = frames[_inside(recording, rows, frames)]
    read = intersect(loading, union(events.start[frames], events.end[frames]))
    return Measure(read.total() / loading.total(), "share", "loader time", len(frames))


def preparing_lines(recording: Recording) -> Measure | Missing:
    """The frames of libraries that prepare samples, or the blocks that the program marks as such, the longest first;
    hostile text."""
    events = recording.trace.events
    rows = np.concatenate(
        (_loading(recording, Kind.PYTHON, "python"), _loading(recording, Kind.ANNOTATION, "annotation"))
    )
    if not len(rows):
        return Missing("Python frames were not recorded; with_stack=True shows what makes batches")
    names, which = np.unique(events.name[rows], return_inverse=True)
    longest = np.argsort(-np.bincount(which, weights=events.duration[rows]))[:MAX_FRAMES_LISTED]
    return text_measure(", ".join(cut(recording.trace.names[name]) for name in names[longest].tolist()), len(rows))


def _loading(recording: Recording, kind: Kind, on: str) -> Rows:
    patterns = activity_patterns(on)
    return host_rows(recording, lambda name: first_match(patterns, name) == "load_batch", kind)


def _whole_fetches(recording: Recording) -> Rows:
    rows = fetches(recording)
    return rows[in_host_steps(recording, recording.trace.events.start[rows])]


def _irregular(slow: Ints) -> bool:
    """Whether slow fetches come at uneven distances; three distances are the least to tell."""
    apart = np.diff(slow)
    return len(apart) > MIN_SLOW and bool(apart.std() > IRREGULAR * apart.mean())


def _inside(recording: Recording, rows: Rows, frames: Rows) -> Bools:
    """Which frames run on a thread that fetches."""
    return np.isin(recording.trace.events.thread[frames], recording.trace.events.thread[rows])
