"""How long the device's stream was at work on each step: pooled events, asked later, never waited for.

    host    fetch ....... forward backward optimizer | fetch ...
    stream        begin>  kkkkk kkkkkkkkkk kkkkk <end

Rows wait here, in order, until the device has passed their last event. Nothing here may synchronise, and nothing may
ask an event while a CUDA graph is captured: that would break the capture, so events live on the training thread alone.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from tb_bottleneck.monitor.steps.step_rows import StepRow

COLUMN = "device_busy"
MOST_PENDING = 256
ASKED_PER_STEP = 4


class TimingEvent(Protocol):
    """What is used of `torch.cuda.Event(enable_timing=True)`."""

    def record(self) -> None:
        """Puts the event on the current stream."""
        ...

    def query(self) -> bool:
        """Whether the device has passed it."""
        ...

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds to another event; both must have been passed."""
        ...


class DeviceSpans:
    """Brackets each step with two events. Without `make`, or where a step has no bracket, rows pass at once.

    `make` gives a new event, or None as long as the device is not in use. `capturing` says whether the current stream
    is in the capture of a graph.
    """

    def __init__(
        self,
        out: Callable[[StepRow], None],
        make: Callable[[], TimingEvent | None] = lambda: None,
        capturing: Callable[[], bool] = lambda: False,
    ) -> None:
        self.on = True
        """Whether steps are bracketed at all; where there is no device, rows only pass."""
        self._out = out
        self._make = make
        self._capturing = capturing
        self._pool: list[TimingEvent] = []
        self._pending: deque[tuple[StepRow, TimingEvent | None, TimingEvent | None]] = deque()
        self._begin: TimingEvent | None = None
        self._end: TimingEvent | None = None
        self._ended = False
        self.failed: Callable[[Exception], None] = lambda _error: None
        """Told once where the device refuses; from then on rows pass without a figure."""

    def begin(self) -> None:
        """The open step's device work starts behind this point; the last call before the work counts."""
        if self.on:
            self._begin = self._record(self._begin)

    def end(self) -> None:
        """The open step's device work ends before this point; the last call counts."""
        if self._begin is not None:
            self._end = self._record(self._end)
            self._ended = self._end is not None

    def close(self, row: StepRow) -> None:
        """The open step is over; its row goes on when the device has caught up."""
        if not self.on:
            self._out(row)
            return
        begin, end = (self._begin, self._end) if self._ended else (None, None)
        if not self._ended:
            self._pool += [one for one in (self._begin, self._end) if one is not None]
        self._begin, self._end, self._ended = None, None, False
        self._pending.append((row, begin, end))
        self._settle()
        if len(self._pending) > MOST_PENDING:
            self._let_go()

    def drop_pending(self) -> None:
        """All rows go on; those that the device has not caught up with have no figure."""
        self._settle(asked=len(self._pending))
        while self._pending:
            self._let_go()

    def _record(self, event: TimingEvent | None) -> TimingEvent | None:
        try:
            if self._capturing():
                return event
            if event is None:
                event = self._pool.pop() if self._pool else self._make()
            if event is not None:
                event.record()
        except Exception as error:  # a device may refuse in many ways, and the training must not hear of it
            self._give_up(error)
            return None
        return event

    def _settle(self, asked: int = ASKED_PER_STEP) -> None:
        while self._pending:
            row, begin, end = self._pending[0]
            if begin is not None and end is not None:
                asked -= 1
                if asked < 0 or not self._resolve(row, begin, end):
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

    def _let_go(self) -> None:
        row, begin, end = self._pending.popleft()
        # Recording an event anew is allowed while the device has not passed it.
        self._pool += [one for one in (begin, end) if one is not None]
        self._out(row)

    def _give_up(self, error: Exception) -> None:
        self._make = lambda: None
        self._pool.clear()
        self.failed(error)
        self._begin = self._end = None
