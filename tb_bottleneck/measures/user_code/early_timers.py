"""Timers of the user's program that stop before the device has done the work that they time.

A call that launches work returns before the device has done this work. If a program reads a clock before and after such
calls and does not wait for the device, the program measures only the launches (pytorch docs, CUDA semantics:
asynchronous execution).
"""

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Record
from tb_bottleneck.measures.trace.window_rows import host_step_of, in_host_steps
from tb_bottleneck.measures.user_code.frames import frame_text, frames_by_thread
from tb_bottleneck.trace.frames import is_user_frame
from tb_bottleneck.trace.kernel_names import cut, name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Rows, by_thread

CLOCKS = re.compile(r"^<built-in function (?:time|perf_counter|monotonic)(?:_ns)?>$")
LEAST_MISSED = 0.10
"""A timer is reported if it misses at least this share of the time of the work. A choice."""
MAX_READINGS = 10_000
"""At most this number of readings of clocks are considered."""


class Timer(Record, frozen=True):
    """A function that reads a clock before and after it launches work. `frame` is the name of its Python frame, which
    is untrusted.

    `measured` is the time between two readings of the clock. `missed` is the time from the second reading until the
    device has done the work that was launched between the readings. Both are medians in ns. If a function times several
    parts, the part with the most missed time is used.
    """

    frame: str
    measured: float
    missed: float


def early_timers(recording: Recording) -> tuple[Timer, ...]:
    """Returns the timers of the user's program that stop before the device has done the timed work, if they miss at
    least LEAST_MISSED of its time. Functions with the most missed time come first.

    Returns () for a run on the CPU, and for a recording without Python stacks.
    """
    if not recording.on_device:
        return ()
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.PYTHON)
    rows = rows[name_matches(trace.names, events.name[rows], lambda name: CLOCKS.match(name) is not None)]
    rows = rows[in_host_steps(recording, events.start[rows])][:MAX_READINGS]
    if not len(rows):
        return ()
    launched = _Launched(recording)
    found: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for thread, own in by_thread(rows, events.thread).items():
        for part, begin, end in _pairs(recording, thread, own):
            if launched.between(begin, end):
                # Work that was left at the first reading was launched before this part.
                missed = launched.left_at(end) - launched.left_at(begin)
                found[part].append((end - begin, max(missed, 0)))
    timers: dict[str, Timer] = {}
    for (frame, _), pairs in sorted(found.items(), key=lambda each: -sum(missed for _, missed in each[1])):
        timer = Timer(cut(frame), *np.median(pairs, axis=0).tolist())
        if timer.missed >= LEAST_MISSED * (timer.measured + timer.missed):
            timers.setdefault(frame, timer)
    return tuple(timers.values())


class _Launched:
    """The device operations that the host launched. Launches of all threads are included, because the autograd thread
    launches the backward pass."""

    def __init__(self, recording: Recording) -> None:
        ops = recording.trace.device_ops
        ops = ops.take(ops.launched)
        issued = ops.issued(recording.trace.calls)
        order = np.argsort(issued, kind="stable")
        self._issued = issued[order]
        self._done = np.maximum.accumulate(ops.end[order])

    def between(self, begin: int, end: int) -> int:
        """Returns the number of operations that were launched from `begin` to `end` (ns)."""
        first, last = np.searchsorted(self._issued, (begin, end))
        return int(last - first)

    def left_at(self, time: int) -> int:
        """Returns how long (ns) the device still works after `time` (ns) on operations that were launched before
        `time`."""
        count = int(np.searchsorted(self._issued, time))
        return max(int(self._done[count - 1]) - time, 0) if count else 0


def _pairs(recording: Recording, thread: int, readings: Rows) -> Iterator[tuple[tuple[str, int], int, int]]:
    """Yields ((frame, number), end of the first reading, start of the second reading) for every two successive readings
    of a clock in one call of a function of the user's program. Times are in ns.

    `frame` is the name of the function's frame, and `number` counts the pairs of this call within a step. `readings`
    are the event rows of one thread that read a clock.
    """
    names, events = recording.trace.names, recording.trace.events
    frames = frames_by_thread(recording).of(thread, events.start[readings])
    if frames is None:
        return
    inside, row = frames.nesting.innermost(events.start[readings])
    row = np.where(frames.rows[row] == readings, frames.nesting.parent[row], row)  # a reading may take no time
    before: dict[int, tuple[int, int, int]] = {}
    steps = host_step_of(recording, events.start[readings])
    columns = (column[inside].tolist() for column in (readings, frames.rows[row], steps))
    for reading, caller, step in zip(*columns, strict=True):
        if not is_user_frame(names[events.name[caller]]):
            continue
        last, number, its_step = before.get(caller, (-1, -1, step))
        number = number + 1 if its_step == step else 0
        if last >= 0:
            yield (frame_text(recording, caller), number), int(events.end[last]), int(events.start[reading])
        before[caller] = (reading, number, step)
