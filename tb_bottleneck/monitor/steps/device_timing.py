"""Measures each step: the device's time, the CPU time of the training thread, and the samples in the batch."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tb_bottleneck.monitor.steps.row_queue import StepRow

_DEPTH = 6


def batch_samples(batch: Any) -> float | None:
    """Returns the number of samples in `batch`: the length of its first tensor's first axis, or None if unknown.

    The first tensor is found through the first value of a mapping and the first element of a list or tuple, up to six
    levels deep. For a list of texts or numbers, the result is the length of the list. A batch that states its size
    (`num_graphs`, or `batch_sizes` of packed sequences) has this number of samples.
    """
    for _ in range(_DEPTH):
        samples = _own_size(batch)
        if samples is not None:
            return samples
        if isinstance(batch, Mapping):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, list | tuple) and batch:
            if isinstance(batch[0], str | bytes | int | float):
                return float(len(batch))
            batch = batch[0]
        else:
            return None
    return None


def _own_size(batch: Any) -> float | None:
    if type(batch) in (list, dict):  # the most common types first, because this runs in every step
        return None
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return float(shape[0]) if len(shape) else 1.0
    if hasattr(batch, "num_graphs"):
        return float(batch.num_graphs)
    if hasattr(batch, "batch_sizes") and hasattr(batch, "data"):
        return float(batch.batch_sizes[0])
    return None


class ThreadTime:
    """Measures the CPU time of the training thread in each step. In the remaining time of the step, the thread waited
    or slept.

    All methods must be called on the training thread."""

    def __init__(self, now: Callable[[], int] = time.thread_time_ns) -> None:
        self._now = now
        self._last: int | None = None

    def add_to(self, row: StepRow) -> None:
        """Adds the CPU time (ns) since the last call to `row`, the step that ended.

        The first row gets no time. If an optimizer inside the backward pass ends a step on a thread of autograd, do not
        call this method, because the clock of that thread differs. The next row then gets the time of both steps."""
        spent = self._now()
        if self._last is not None and spent >= self._last:
            row.figures["thread_cpu"] = float(spent - self._last)
        self._last = spent


COLUMN = "device_busy"
MAX_PENDING = 256
QUERIES_PER_STEP = 4


class TimingEvent(Protocol):
    """The part of `torch.cuda.Event(enable_timing=True)` that the monitor uses."""

    def record(self) -> None:
        """Puts the event on the current stream."""
        ...

    def query(self) -> bool:
        """Returns True if the device has done all work that was put on the stream before the event."""
        ...

    def elapsed_time(self, end: Any) -> float:
        """Returns the milliseconds on the device from this event to `end`. The device must have reached both events."""
        ...


class DeviceSpans:
    """Measures the device time of each step: the time on the device's stream between two events, which are recorded
    before and after the step's device work, and queried later.

        host    fetch ....... forward backward optimizer | fetch ...
        stream        start>  kkkkk kkkkkkkkkk kkkkk <end

    The row of a step is held until the device has passed the step's last event, and is then passed to `out`. Rows stay
    in order. A row without events is passed on as soon as the rows before it are. Nothing here may wait for the device.
    An event that is queried during the capture of a CUDA graph would break the capture. Only the capturing thread can
    know that a capture is open, so events are used on the training thread only.

    `make` returns a new event, or None while the device is not initialised. `capturing` returns True during the capture
    of a graph on the current stream. `on_failure` is called if the device raises an error; from then on, rows are
    passed on without a device time.
    """

    def __init__(
        self,
        out: Callable[[StepRow], None],
        make: Callable[[], TimingEvent | None] = lambda: None,
        capturing: Callable[[], bool] = lambda: False,
        on_failure: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._enabled = True
        self._out = out
        self._make = make
        self._capturing = capturing
        self._on_failure = on_failure
        self._pool: list[TimingEvent] = []
        self._pending: deque[tuple[StepRow, TimingEvent | None, TimingEvent | None]] = deque()
        self._begin: TimingEvent | None = None
        self._end: TimingEvent | None = None
        self._ended = False

    def disable(self) -> None:
        """Records no events from now on, because there is no device."""
        self._enabled = False

    def begin(self) -> None:
        """Marks where the device work of the open step begins. Call it before this work. If called several times, the
        last call counts."""
        if self._enabled:
            self._begin = self._record(self._begin)

    def end(self) -> None:
        """Marks where the device work of the open step ends. If called several times, the last call counts."""
        if self._begin is not None:
            self._end = self._record(self._end)
            self._ended = self._end is not None

    def close(self, row: StepRow) -> None:
        """Ends the open step. `row` is passed on when the device has reached the events of the step."""
        if not self._enabled:
            self._out(row)
            return
        begin, end = (self._begin, self._end) if self._ended else (None, None)
        if not self._ended:
            self._pool += [event for event in (self._begin, self._end) if event is not None]
        self._begin, self._end, self._ended = None, None, False
        self._pending.append((row, begin, end))
        self._settle()
        if len(self._pending) > MAX_PENDING:
            self._release_oldest()

    def drop_pending(self) -> None:
        """Passes on all rows that are held. Rows whose events the device has not reached get no device time."""
        self._settle(queries=len(self._pending))
        while self._pending:
            self._release_oldest()

    def _record(self, event: TimingEvent | None) -> TimingEvent | None:
        try:
            if self._capturing():
                return event
            if event is None:
                event = self._pool.pop() if self._pool else self._make()
            if event is not None:
                event.record()
        except Exception as error:  # a device may refuse in many ways, which must not reach the training
            self._give_up(error)
            return None
        return event

    def _settle(self, queries: int = QUERIES_PER_STEP) -> None:
        while self._pending:
            row, begin, end = self._pending[0]
            if begin is not None and end is not None:
                queries -= 1
                if queries < 0 or not self._resolve(row, begin, end):
                    return
            self._pending.popleft()
            self._out(row)

    def _resolve(self, row: StepRow, begin: TimingEvent, end: TimingEvent) -> bool:
        try:
            if self._capturing() or not end.query():
                return False
            row.figures[COLUMN] = begin.elapsed_time(end) * 1e6
        except Exception as error:
            self._give_up(error)
            return True
        self._pool += [begin, end]
        return True

    def _release_oldest(self) -> None:
        row, begin, end = self._pending.popleft()
        # An event may be reused before the device has passed it: recording it again is allowed.
        self._pool += [event for event in (begin, end) if event is not None]
        self._out(row)

    def _give_up(self, error: Exception) -> None:
        self._make = lambda: None
        self._pool.clear()
        self._on_failure(error)
        self._begin = self._end = None
