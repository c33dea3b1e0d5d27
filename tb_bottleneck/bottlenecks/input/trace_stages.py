"""The stages of making a batch: from recorded Python frames if the training thread makes the batches, else from samples
taken in the loader's workers."""

import math

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.input.loader import (
    MIN_FETCHES,
    NO_LOADER,
    SINGLE_PROCESS_ITERATOR,
    loader_idle,
    loader_iterator,
)
from tb_bottleneck.bottlenecks.input.stages import LoaderWork, Stage, sampled_work, stage_text, stages_of, with_classes
from tb_bottleneck.measures.trace.window_rows import device_work, fetches, host_rows, in_host_steps
from tb_bottleneck.measures.user_code.frames import ancestors, frames_by_thread
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind

MOMENTS = 1_000
"""Number of times, spread evenly over the fetches, at which frames are looked up. With this number, the share of a
stage that takes a tenth of the time is known to within two percentage points."""
_NO_FRAMES = Missing("Python frames were not recorded; with_stack=True shows what the loader does")
# Of io.open and os.open, as the profiler names it. Decoders that open files in C++ do not call it.
_OPEN = "<built-in function open>"
_PIN = "torch/utils/data/_utils/pin_memory.py("
_LOADER_FILES = ("torch/utils/data/_utils/", "torch/utils/data/dataloader.py(")


@memoized
def loader_work(recording: Recording) -> LoaderWork | Missing:
    """Returns the work of making batches: from recorded frames if the training thread makes the batches, else from the
    stacks that the monitor sampled in the workers."""
    iterator = loader_iterator(recording)
    if isinstance(iterator, Missing):
        return NO_LOADER
    if iterator.text == SINGLE_PROCESS_ITERATOR:
        work = _work_of_frames(recording)
    else:
        work = sampled_work(recording.trace.header.context)
    if isinstance(work, Missing) or not work.batches:
        return work
    fetched = batches_in_window(recording)
    # Pinning and copies are measured in the window, but the samples cover the whole run. Both times are multiplied by
    # (batches of the run / batches of the window).
    times = work.batches / max(fetched, 1)
    return work.with_beside(Stage(name, "", ns * times) for name, ns in _beside(recording) if ns)


def costliest_stage(recording: Recording) -> Measure | Missing:
    """The stage of making a batch that takes the most time, and its share of the time of all stages, as text."""
    work = loader_work(recording)
    if isinstance(work, Missing):
        return work
    return text_measure(f"{stage_text(work.stages[0])}, {share_text(work.stages[0].ns / max(work.ns, 1.0))}")


def batch_time(recording: Recording) -> Measure | Missing:
    """Mean time (ns) that one process takes to make a batch."""
    work = loader_work(recording)
    if isinstance(work, Missing):
        return work
    if work.batch_ns is None:
        return Missing("the number of batches is not known")
    return Measure(work.batch_ns, "ns", "batch", int(work.batches))


def workers_at_work(recording: Recording) -> Measure | Missing:
    """Share of the workers' time in which they make batches, sampled from the start of the workers until the trace was
    written."""
    work = loader_work(recording)
    if isinstance(work, Missing):
        return work
    if work.waiting_share is None or work.batches < MIN_FETCHES:
        return Missing("too few batches were sampled in the workers")
    return Measure(1.0 - work.waiting_share, "share", "worker time", int(work.batches))


def processes_needed(recording: Recording) -> Measure | Missing:
    """Number of worker processes that would make batches as fast as the training uses them if it never waits for a
    batch (count). The number of cores does not limit this number.

    The number is the time in which one process makes the batches of a step / the time of the step without the wait for
    batches, rounded up. With gradient accumulation, a step has several batches.
    """
    batch, idle = batch_time(recording), loader_idle(recording)
    if isinstance(batch, Missing) or isinstance(idle, Missing):
        return batch if isinstance(batch, Missing) else NO_LOADER
    rest = recording.account.window / len(recording.steps) - idle.value
    making = batch.value * max(batches_in_window(recording) / len(recording.steps), 1.0)
    return Measure(float(max(math.ceil(making / max(rest, 1.0)), 1)), "count", "process", batch.count)


def batches_in_window(recording: Recording) -> int:
    """Returns the number of fetches that begin in the host's steps."""
    return int(in_host_steps(recording, recording.trace.events.start[fetches(recording)]).sum())


def _work_of_frames(recording: Recording) -> LoaderWork | Missing:
    """Returns the work of making batches on the training thread, from the Python frames that run at MOMENTS times in
    the fetches of the window."""
    events, rows = recording.trace.events, fetches(recording)
    rows = rows[in_host_steps(recording, events.start[rows])]
    if not len(rows):
        return NO_LOADER
    thread = int(np.bincount(events.thread[rows]).argmax())
    rows = rows[events.thread[rows] == thread]
    spans = union(events.start[rows], events.end[rows])
    if not len(spans.starts):  # no fetch takes time
        return NO_LOADER
    # The middle of each of MOMENTS equal parts of the time in fetches.
    part = spans.total() / MOMENTS
    offset = (np.arange(MOMENTS) + 0.5) * part
    before = np.cumsum(spans.ends - spans.starts) - (spans.ends - spans.starts)
    which = np.searchsorted(before, offset, side="right") - 1
    times = np.asarray(spans.starts[which] + offset - before[which], np.int64)
    frames = frames_by_thread(recording).of(thread, times)
    if frames is None:
        return _NO_FRAMES
    innermost, *_ = frames.at(times)
    found, counts = np.unique(innermost[innermost >= 0], return_counts=True)
    name_of, names, named = events.name, recording.trace.names, with_classes(recording.trace.header.context)
    stacks = []
    for row, count in zip(found.tolist(), counts.tolist(), strict=True):
        stack = [names[name_of[frame]] for frame in ancestors(frames, row)]
        inside = [place for place, frame in enumerate(stack) if frame.startswith(_LOADER_FILES)]
        if inside:
            stacks.append((list(map(named, stack[inside[0] :])), count * part))
    if not stacks:
        return _NO_FRAMES
    opens = host_rows(recording, lambda name: name == _OPEN, Kind.PYTHON)
    opens = opens[(events.thread[opens] == thread) & spans.contains(events.start[opens])]
    return LoaderWork(stages_of(stacks), "frames", float(len(rows)), opens=float(len(opens)) or None)


def _beside(recording: Recording) -> tuple[tuple[str, float], ...]:
    """Returns (("pin", ns), ("copy", ns)): the time in which threads other than those that load batches copy batches to
    pinned memory, and the time in which copies to the device run."""
    trace, events = recording.trace, recording.trace.events
    pinning = trace.rows(Kind.PYTHON)
    pinning = pinning[in_host_steps(recording, events.start[pinning])]
    pinning = pinning[name_matches(trace.names, events.name[pinning], lambda name: name.startswith(_PIN))]
    loading = distinct_values(events.thread[fetches(recording)])
    pinning = pinning[~np.isin(events.thread[pinning], loading)]
    pinning = pinning[name_matches(trace.names, events.name[pinning], lambda name: name.endswith(": pin_memory"))]
    copies = device_work(recording, Work.UPLOAD)
    pinned = float(union(events.start[pinning], events.end[pinning]).total())
    return ("pin", pinned), ("copy", float(union(copies.start, copies.end).total()))
