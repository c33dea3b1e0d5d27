"""Measures of the data loader as the training thread sees it. Worker processes never appear in a trace.

A fetch is one call of `DataLoader.__next__`, or of the same method of a DataPipe, which returns the next batch.
"""

import re

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import clip, intersect, subtract, union
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.host.facts import operator_names
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match, frame_patterns
from tb_bottleneck.measures.trace.window_rows import fetches, host_rows, in_host_steps, with_example
from tb_bottleneck.trace.kernel_names import cut, name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints, Rows

NO_LOADER = Missing("no DataLoader iteration was recorded")
ONLY_BATCHES = Missing("only some code that creates batches was recorded, and no DataLoader iteration")
SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
# A slow fetch takes more than SLOW_TIMES the median (the method's rule for outliers), and more than SLOW_NS, because a
# fetch from a queue with a ready batch takes well under a millisecond.
SLOW_TIMES, SLOW_NS = 3.0, 1_000_000
# One slow fetch may be the first of an epoch. Fewer fetches than MIN_FETCHES show no usual length: the range of n
# values contains the median with a probability of 1 - 2 ** (1 - n), which is 97 % for six and 94 % for five (the sign
# test's interval; Conover, Practical Nonparametric Statistics).
MIN_SLOW, MIN_FETCHES = 2, 6
# With too few workers, batches arrive in bursts: a long wait comes regularly, once per round of workers. Waits with
# distances that vary by more than this, relative to their mean, have another reason.
IRREGULAR = 0.5
MAX_FRAMES_LISTED = 3
# The standard library's frames between processes: a batch's memory is handed over through a socket of the worker.
_EXCHANGE = re.compile(r"(?:^|/)multiprocessing/(?:connection|resource_sharer|reduction|queues)\.py\(")
# Taking a ready batch from the queue and handing over its memory takes 0.06 to 0.2 ms. Longer fetches wait.
LONGEST_HANDOVER_NS = 200_000


def loader_fetch(recording: Recording) -> Measure | Missing:
    """Time per step (ns) that the training thread spends in fetches, whether or not the device is busy."""
    rows = fetches(recording)
    if not len(rows):
        return NO_LOADER
    events = recording.trace.events
    host = recording.steps.host
    spans = clip(union(events.start[rows], events.end[rows]), int(host[0]), int(host[-1]))
    return with_example(spans.total() / len(recording.steps), "ns", "step", events.start[rows], events.end[rows])


def batches_seen(recording: Recording) -> Measure | Missing:
    """The same as `loader_fetch`. If no fetch was recorded, but other code that creates batches was, the result is
    ONLY_BATCHES."""
    fetch = loader_fetch(recording)
    return ONLY_BATCHES if isinstance(fetch, Missing) and recording.account.ns[Regime.INPUT] else fetch


def loader_idle(recording: Recording) -> Measure | Missing:
    """Time per step (ns) in which the device is idle while the training thread is in the loader."""
    if not recording.on_device:
        return loader_fetch(recording)
    idle, gaps = recording.gaps.by_activity.of(Activity.LOAD_BATCH), recording.gaps
    if not idle.any():
        return Measure(0.0, "ns", "step", 0)
    longest = int(np.argmax(idle))
    begin, end = _loading_in(recording, int(gaps.begin[longest]), int(gaps.end[longest]))
    return Measure(float(idle.sum()) / len(recording.steps), "ns", "step", int((idle > 0).sum()), begin=begin, end=end)


def loader_iterator(recording: Recording) -> Measure | Missing:
    """The class of the loader's iterator, as text.

    `_SingleProcessDataLoaderIter` loads in the training process, `_MultiProcessingDataLoaderIter` in workers.
    """
    rows = fetches(recording)
    for name in distinct_values(recording.trace.events.name[rows]).tolist():
        text = recording.trace.names[name]
        for kind in (SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR):
            if kind in text:
                return text_measure(kind, len(rows))
    return Missing("the loader's iterator is not named in the recording")


def usual_fetch(recording: Recording) -> Measure | Missing:
    """The median duration of a fetch (ns)."""
    events, rows = recording.trace.events, _whole_fetches(recording)
    if not len(rows):
        return NO_LOADER
    return with_example(float(np.median(events.duration[rows])), "ns", "fetch", events.start[rows], events.end[rows])


def fetches_recorded(recording: Recording) -> Measure | Missing:
    """The number of fetches in the whole recording. At least MIN_FETCHES are needed to know whether workers keep up."""
    rows, events = fetches(recording), recording.trace.events
    return with_example(float(len(rows)), "count", "fetch", events.start[rows], events.end[rows])


def waiting_fetches(recording: Recording) -> Measure | Missing:
    """The number of fetches in the whole recording that take longer than LONGEST_HANDOVER_NS, the time to hand over a
    batch that is ready."""
    rows, events = fetches(recording), recording.trace.events
    rows = rows[events.duration[rows] > LONGEST_HANDOVER_NS]
    return with_example(float(len(rows)), "count", "fetch", events.start[rows], events.end[rows])


def first_batch_wait(recording: Recording) -> Measure | Missing:
    """The duration of the longest fetch (ns) if it ends before the first device operation; otherwise missing.

    During this fetch, the workers start and make their first batch.
    """
    events, rows, ops = recording.trace.events, fetches(recording), recording.trace.all_device_ops
    if not len(rows):
        return NO_LOADER
    if not len(ops) or recording.steps.basis == "profiler_step":  # a schedule begins within the training
        return Missing("the recording does not show the start of the training")
    longest = rows[np.argmax(events.duration[rows])]
    begin, end = int(events.start[longest]), int(events.end[longest])
    if end > ops.start.min():
        return Missing("the longest fetch is not the first work of the recording")
    return Measure(float(end - begin), "ns", "fetch", len(rows), begin=begin, end=end)


def slowest_fetch(recording: Recording) -> Measure | Missing:
    """The duration of the longest fetch in the window (ns)."""
    events, rows = recording.trace.events, _whole_fetches(recording)
    if not len(rows):
        return NO_LOADER
    slowest = rows[np.argmax(events.duration[rows])]
    begin, end = int(events.start[slowest]), int(events.end[slowest])
    return Measure(float(end - begin), "ns", "fetch", len(rows), begin=begin, end=end)


def uneven_fetches(recording: Recording) -> Measure | Missing:
    """The time by which slow fetches exceed the median fetch, as a share of the time of all fetches. A slow fetch takes
    more than SLOW_TIMES the median and more than SLOW_NS.

    The share is 0 if slow fetches come at regular distances, as they do with too few workers.
    """
    rows = _whole_fetches(recording)
    if len(rows) < MIN_FETCHES:
        return NO_LOADER if not len(rows) else Missing("too few fetches were recorded to recognise a slow one")
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
    """Share of the loader's time on the training thread in Python frames that read files or receive from a network.

    Receiving data from a worker process does not count.
    """
    return _share_of_frames(recording, "read")


def loader_waits(recording: Recording) -> Measure | Missing:
    """Share of the loader's time on the training thread in Python frames that wait without a core, such as sleep."""
    return _share_of_frames(recording, "wait")


@memoized
def _reading_or_waiting(recording: Recording) -> Rows:
    return host_rows(recording, lambda name: first_match(frame_patterns(), name) in ("read", "wait"), Kind.PYTHON)


def _share_of_frames(recording: Recording, does: str) -> Measure | Missing:
    if not recording.trace.header.stacks_recorded:
        return Missing("Python frames were not recorded; with_stack=True shows what the loader does")
    events, rows = recording.trace.events, _whole_fetches(recording)
    loading = union(events.start[rows], events.end[rows])
    if not len(loading):
        return NO_LOADER
    frames = _reading_or_waiting(recording)
    frames = frames[np.isin(events.thread[frames], events.thread[rows])]
    names = events.name[frames]
    frames = frames[
        name_matches(recording.trace.names, names, lambda name: first_match(frame_patterns(), name) == does)
    ]
    if not len(frames):
        return Measure(0.0, "share", "loader time", 0)
    exchanges = host_rows(recording, lambda name: bool(_EXCHANGE.search(name)), Kind.PYTHON)
    inside = intersect(loading, union(events.start[frames], events.end[frames]))
    inside = subtract(inside, union(events.start[exchanges], events.end[exchanges]))
    return Measure(inside.total() / loading.total(), "share", "loader time", len(frames))


def preparing_lines(recording: Recording) -> Measure | Missing:
    """The frames, record_function blocks or operators of the program that prepare batches, longest first, as text
    (untrusted)."""
    events = recording.trace.events
    rows = np.concatenate(
        (_loading_rows(recording, Kind.PYTHON, "python"), _loading_rows(recording, Kind.ANNOTATION, "annotation"))
    )
    if not len(rows):
        operators, count = operator_names(recording, makes_batch=True)
        if operators:
            return text_measure(", ".join(f"{name} on the CPU" for name in operators), count)
        return Missing("Python frames were not recorded; with_stack=True shows the code that creates batches")
    names, which = np.unique(events.name[rows], return_inverse=True)
    longest = np.argsort(-np.bincount(which, weights=events.duration[rows]))[:MAX_FRAMES_LISTED]
    return text_measure(", ".join(cut(recording.trace.names[name]) for name in names[longest].tolist()), len(rows))


@memoized
def _whole_fetches(recording: Recording) -> Rows:
    """Returns the event rows of the fetches that begin in the host's steps."""
    rows = fetches(recording)
    return rows[in_host_steps(recording, recording.trace.events.start[rows])]


def _loading_rows(recording: Recording, kind: Kind, on: str) -> Rows:
    """Returns the event rows of the kind `kind` whose names show that they create batches. `on` is the key of the list
    of such names: "python" or "annotation"."""
    patterns = activity_patterns(on)
    return host_rows(recording, lambda name: first_match(patterns, name) == "load_batch", kind)


def _irregular(slow: Ints) -> bool:
    """Returns True if the distances between slow fetches are uneven; False for fewer than three distances. `slow` has
    the positions of slow fetches in the sequence of fetches."""
    distance = np.diff(slow)
    return len(distance) > MIN_SLOW and bool(distance.std() > IRREGULAR * distance.mean())


def _loading_in(recording: Recording, begin: int, end: int) -> tuple[int, int]:
    """Returns start and end of the longest part of a fetch in the idle gap from `begin` to `end`; the whole gap if
    there is no fetch in it. All times are in ns."""
    events, rows = recording.trace.events, fetches(recording)
    starts, ends = np.maximum(events.start[rows], begin), np.minimum(events.end[rows], end)
    if not len(rows) or (ends - starts).max() <= 0:
        return begin, end
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest])
