"""Measures of work on batches that workers or storage do not make shorter, from Python frames, and its fixes.

- A new iterator of the loader is created for each batch, and draws the order of all samples again.
- The sampler, which runs in the training process with workers too, takes most of the time.
- Samples are read and collated one by one, although each of them needs only microseconds.
- Tensors become Python lists, or are made from them, number by number.
- The training process opens the shared memory of each tensor that a worker has made.
"""

import re
from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.profiler_time.step_parts import FROM_WORKER
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, intersect, merge, subtract, union
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.input.loader import NO_LOADER, SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR, loader_iterator
from tb_bottleneck.knowledge.catalogue import first_match, frame_patterns
from tb_bottleneck.measures.trace.process_facts import count_of
from tb_bottleneck.measures.trace.window_rows import fetches, host_rows, in_host_steps
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import QUICKER_OPERATORS, Scenario, with_quicker_operators
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Rows

_LOADER = r"torch/utils/data/dataloader\.py\(\d+\): "
_SAMPLER = re.compile(f"{_LOADER}_next_index$").match
_ITERATOR = re.compile(f"{_LOADER}__iter__$").match
# Dropping an iterator stops its workers, and frees the order of all samples, which a generator of the sampler holds.
_DROPPED = re.compile(rf"{_LOADER}__del__$|torch/utils/data/sampler\.py\(\d+\): __iter__$").match
_LISTS = re.compile(
    "<built-in (?:method (?:tensor|as_tensor|asarray) of type|method tolist of|function (?:array|asarray)>)"
).match

_STORAGE = re.compile(r"torch/multiprocessing/reductions\.py\(\d+\): rebuild_storage").match

REMAINS = {Estimate.EXPECTED: 0.04, Estimate.LOW: 0.15, Estimate.HIGH: 0.0}
"""The part of the removed time that remains. Expected: the mean of thirteen trainings whose batches were prepared or
whose code was vectorised. Of these, 0 to 13 % remained."""
REMAINS_OF_HANDOVER = {Estimate.EXPECTED: 0.2, Estimate.LOW: 0.8, Estimate.HIGH: 0.0}
"""As REMAINS, for taking a batch from a worker. Measured on two cores for batches of two tensors of 8 KB: none to a
third as arrays (three trainings), 0.56 with the sharing strategy file_system, 0.78 as one tensor."""
MOST_QUICKER = 0.5
"""As QUICKER_OPERATORS, for the high estimate of a fix. After the fixes of six small trainings on a CPU, the
operators took 0 to 54 % less time."""


def iterator_share(recording: Recording) -> Measure | Missing:
    """Share of the loader's time in which its iterators are created and draw indices; with workers, also the wait for
    the first batch of new workers."""
    return _share(recording, iterator_spans(recording))


def sampler_share(recording: Recording) -> Measure | Missing:
    """Share of the loader's time in which the sampler draws the indices of batches."""
    return _share(recording, sampler_spans(recording))


def conversion_share(recording: Recording) -> Measure | Missing:
    """Share of the loader's time on the training thread in which Python lists become tensors or arrays, or the
    reverse."""
    return _share(recording, conversion_spans(recording))


def handover_share(recording: Recording) -> Measure | Missing:
    """Share of the loader's time in which the training thread takes over batches that workers have made."""
    return _share(recording, handover_spans(recording))


def tensors_per_batch(recording: Recording) -> Measure | Missing:
    """Number of tensors of a batch whose memory workers share with the training process (count)."""
    rows, calls = _fetches(recording), host_rows(recording, lambda name: bool(_STORAGE(name)), Kind.PYTHON)
    if not len(rows) or not len(calls):
        return Missing("no tensor is taken from a worker in the recorded steps")
    calls = calls[in_host_steps(recording, recording.trace.events.start[calls])]
    return Measure(len(calls) / len(rows), "count", "batch", len(rows))


def batches_per_iterator(recording: Recording) -> Measure | Missing:
    """Number of batches per iterator of the loader (count). Missing if an epoch has a single batch."""
    created, batches = len(_created(recording)), len(_fetches(recording))
    if not created or not batches:
        return Missing("no iterator of a loader is created in the recorded steps")
    if count_of(recording, "epoch_batches") == 1:
        return Missing("an epoch has a single batch")
    return Measure(batches / created, "count", "iterator", created)


def time_per_sample(recording: Recording) -> Measure | Missing:
    """Time (ns) in which the training process reads one sample and adds it to its batch. Missing unless each sample is
    read by a call of its own."""
    rows, iterator = _fetches(recording), loader_iterator(recording)
    if isinstance(iterator, Missing) or iterator.text != SINGLE_PROCESS_ITERATOR or not len(rows):
        return NO_LOADER
    calls = host_rows(recording, lambda name: name.endswith(": __getitem__"), Kind.PYTHON)
    size = count_of(recording, "batch_size") or 0
    if not size or len(calls) < size * len(rows) / 2:
        return Missing("samples are not read one by one, or the batch size was not recorded")
    return Measure(float(recording.trace.events.duration[rows].mean()) / size, "ns", "sample", size * len(rows))


def iterator_spans(recording: Recording) -> Spans:
    """Returns the time in which iterators of the loader are created, draw indices and are dropped, or in which new
    workers make their first batch."""
    rows, iterator = _fetches(recording), loader_iterator(recording)
    in_workers = isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR
    events = recording.trace.events
    first = union(events.start[rows], events.end[rows]) if in_workers else sampler_spans(recording)
    return merge(_created(recording), _dropped(recording), first)


@memoized
def sampler_spans(recording: Recording) -> Spans:
    """Returns the time in which the sampler draws indices."""
    return _frames(recording, _SAMPLER)


@memoized
def handover_spans(recording: Recording) -> Spans:
    """Returns the time in which the training thread reads messages of workers and opens the memory that they share."""
    iterator = loader_iterator(recording)
    in_workers = isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR
    return _frames(recording, FROM_WORKER.match) if in_workers else union(*np.empty((2, 0), np.int64))


def conversion_spans(recording: Recording) -> Spans:
    """Returns the time in which Python lists become tensors or arrays, or the reverse, without reading, decoding and
    drawing indices in it."""
    files = _frames(recording, lambda name: first_match(frame_patterns(), name) in ("read", "decode"))
    return subtract(_frames(recording, _LISTS), merge(files, sampler_spans(recording)))


def _share(recording: Recording, spans: Spans) -> Measure | Missing:
    """Returns the share of the loader's time on the training thread that `spans` cover."""
    events, rows = recording.trace.events, _fetches(recording)
    loading = merge(union(events.start[rows], events.end[rows]), _created(recording), _dropped(recording))
    if not recording.trace.header.stacks_recorded or not len(loading):
        return NO_LOADER
    return Measure(intersect(loading, spans).total() / loading.total(), "share", "loader time", len(spans))


@memoized
def _created(recording: Recording) -> Spans:
    """Returns the time in which iterators of the loader are created."""
    return _frames(recording, _ITERATOR)


@memoized
def _dropped(recording: Recording) -> Spans:
    """Returns the time in which iterators of the loader are dropped, and in which samplers iterate."""
    return _frames(recording, _DROPPED)


@memoized
def _fetches(recording: Recording) -> Rows:
    rows = fetches(recording)
    return rows[in_host_steps(recording, recording.trace.events.start[rows])]


def _frames(recording: Recording, test: Callable[[str], object]) -> Spans:
    """Returns the time of the Python frames whose names pass `test`, on the threads that take batches."""
    events, rows = recording.trace.events, host_rows(recording, lambda name: bool(test(name)), Kind.PYTHON)
    loading = np.isin(events.thread[rows], events.thread[_fetches(recording)])
    return union(events.start[rows[loading]], events.end[rows[loading]])


def _without(
    share: Callable[[Recording], Measure | Missing], remains: dict[Estimate, float] = REMAINS
) -> Callable[[ModifiedGraph, Estimate], ModifiedGraph | None]:
    """Returns the function of a scenario that removes the part `share` of the loader's time, except `remains` of it.

    On a CPU run, the operators get a little faster (with_quicker_operators). The function returns None if the part is
    not known.
    """

    def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
        part = share(graph.base.recording)
        if isinstance(part, Missing):
            return None
        left = 1 - part.value * (1 - remains[estimate])
        fixed = graph.with_items(gap=graph.gap_scaled(Activity.LOAD_BATCH, left)).with_pace(0.0)
        most = MOST_QUICKER if estimate is Estimate.HIGH else QUICKER_OPERATORS
        return with_quicker_operators(graph, fixed, quicker=most)

    return apply


KEPT_ITERATOR = Scenario("kept_iterator", _without(iterator_share), on_cpu=True)
SAMPLER = Scenario("vectorised_sampler", _without(sampler_share), on_cpu=True)
ARRAYS = Scenario("stacked_arrays", _without(conversion_share), on_cpu=True)
BATCHES = Scenario("whole_batches", _without(lambda _: Measure(1.0, "share")), on_cpu=True)
HANDOVER = Scenario("handed_arrays", _without(handover_share, REMAINS_OF_HANDOVER), on_cpu=True)

FIXES = {
    "iterator_per_batch": KEPT_ITERATOR,
    "slow_sampler": SAMPLER,
    "tensors_from_lists": ARRAYS,
    "samples_one_by_one": BATCHES,
    "tensor_handover": HANDOVER,
}
"""The scenario that simulates the fix of each cause."""
