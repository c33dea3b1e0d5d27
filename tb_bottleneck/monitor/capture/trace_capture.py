"""Records traces by itself: a short window of torch.profiler after warm-up, and again when asked or when the run
changed.

    step     0 ............ 10 ......... 30 ... 37
             warm-up        unprofiled   trace        later: on request, after a change
             (and what the loader fetched ahead)

All of it happens on the training thread, between two steps; only turning the recording into a file does not.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.steps.step_rows import StepRow

SIGNAL = "traces"
SKIPPED = 10
"""Steps before anything counts: first kernels, autotuning, allocator."""
MEASURED = 20
"""Unprofiled steps that must be known before a trace, to say how much the profiler slows the steps."""
MEASURED_SLOW, SLOW_NS = 5, 30_000_000_000
"""So many do where they took this long."""
STEPS_LEAST, STEPS_MOST, WINDOW_NS = 2, 6, 3_000_000_000
"""A window has up to six steps, and fewer where six would take longer than three seconds."""
STEP_TOO_LONG_NS = 30_000_000_000
"""Longer steps are recorded on request only: their traces grow beyond what can be read."""
COOL_DOWN_NS = 60_000_000_000


class Profiler(Protocol):
    """What is used of torch.profiler.profile."""

    def start(self) -> None: ...
    def step(self) -> None: ...
    def stop(self) -> None: ...
    def add_metadata_json(self, key: str, value: str) -> None: ...
    def export_chrome_trace(self, path: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class FinishedRecording:
    """A finished recording that is not yet a file."""

    profiler: Profiler
    reason: str


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """How many traces: `automatic` by itself, `requested` on top of them."""

    automatic: int = 3
    requested: int = 20
    together: bool = False
    """Several ranks must choose the same steps, so that none is slowed while the others are not."""


class TraceCapture:
    """Told of each step by `advance`; gives each finished recording to `done`.

    `new` makes a profiler for so many steps, `busy` says whether another profiler is at work, `facts` gives the
    metadata.
    """

    def __init__(
        self,
        new: Callable[[int], Profiler],
        busy: Callable[[], bool],
        facts: Callable[[dict[str, object]], str],
        done: Callable[[FinishedRecording], None],
        guard: Guard,
        allowed: CaptureLimits,
        now: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._new, self._busy, self._facts, self._done = new, busy, facts, done
        self._guard = guard
        self._now = now
        self._automatic = allowed.automatic
        self._requested = allowed.requested
        self._together = allowed.together
        self._began = now()
        self._unprofiled: deque[float] = deque(maxlen=64)
        self._asked: str | None = None
        self._changed: str | None = None
        self._profiler: Profiler | None = None
        self._reason = self._metadata = ""
        self._whole = self._left = 0
        self._ended_at: int | None = None
        self.fetched_ahead = 0
        """Batches that the loader had ready before the first step: the steps that use them do not show its pace."""
        self._ours_in: int | None = None
        self._spoilt = False

    @property
    def running(self) -> bool:
        """Whether a window is open."""
        return self._profiler is not None

    def ask(self, reason: str) -> None:
        """Somebody wants a trace now. Any thread."""
        self._asked = reason

    def changed(self, reason: str) -> None:
        """The run is no longer what it was. Any thread."""
        self._changed = reason

    def advance(self, row: StepRow) -> None:
        """A step ended."""
        if self._spoilt:
            self._drop()
        if self._profiler is not None:
            self._try(self._go_on, self._profiler)
            return
        if not row.figures.get("profiled") and row.number >= SKIPPED + self.fetched_ahead:
            self._unprofiled.append(row.working_ns)
        reason = self._why()
        if reason is not None and not self._busy():
            self._try(self._start, reason)

    def is_ours_now(self) -> bool:
        """Whether what a profiler begins or ends on this thread right now is ours."""
        return self._ours_in == threading.get_ident()

    def stand_aside(self, at_once: bool = True) -> None:
        """Somebody else's profiler begins, and two cannot run: ours is thrown away. `at_once` on the training thread;
        from another one it can only be left to the next step."""
        if self._profiler is None:
            return
        self._guard.note("capture_dropped", "the training's own profiler began")
        if at_once:
            self._drop()
        else:
            self._spoilt = True

    def _try(self, work: Callable[..., None], *arguments: object) -> None:
        """Where it fails there are no more traces, and none is left open."""
        profiler = self._profiler
        self._guard.call(SIGNAL, work, *arguments)
        if not self._guard.is_on(SIGNAL):
            profiler, self._profiler = self._profiler or profiler, None
            if profiler is not None:
                self._guard.call("ending a trace", self._ours, profiler.stop)

    def _drop(self) -> None:
        profiler, self._profiler = self._profiler, None
        self._spoilt = False
        self._ended_at = self._now()
        if profiler is not None:
            self._guard.call(SIGNAL, self._ours, profiler.stop)

    def finish(self) -> None:
        """The training is over: an open window is closed; it is kept if it has a whole step."""
        if self._spoilt:
            self._drop()
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        has_a_step = self._whole - self._left >= 2
        if has_a_step:
            self._guard.call(SIGNAL, self._sign, profiler)
        self._guard.call(SIGNAL, self._ours, profiler.stop)
        if has_a_step and self._guard.is_on(SIGNAL):
            self._done(FinishedRecording(profiler, self._reason))

    def _why(self) -> str | None:
        if self._asked is not None and self._requested > 0:
            return "asked"
        if self._asked is not None:
            self._guard.note(
                "dropped", "a trace was asked for and not recorded: there were as many as one run may have"
            )
            self._asked = None
        if self._automatic <= 0 or not self._unprofiled:
            return None
        if self._ended_at is None:
            reason = "first" if self._warmed_up() else None
        else:
            due = self._changed is not None and self._now() - self._ended_at > COOL_DOWN_NS
            reason = "changed" if due else None
        return reason if reason is not None and self._step_ns() <= STEP_TOO_LONG_NS else None

    def _warmed_up(self) -> bool:
        known = len(self._unprofiled)
        slow = known >= MEASURED_SLOW and sum(self._unprofiled) >= SLOW_NS
        return known >= MEASURED or (slow and not self._together)

    def _step_ns(self) -> float:
        return median(self._unprofiled) if self._unprofiled else 0.0

    def _steps(self) -> int:
        return max(STEPS_LEAST, min(STEPS_MOST, int(WINDOW_NS / max(self._step_ns(), 1.0))))

    def _start(self, reason: str) -> None:
        if reason == "asked":
            self._requested -= 1
        else:
            self._automatic -= 1
        self._reason = {"asked": self._asked, "changed": self._changed}.get(reason) or "the first after warm-up"
        self._asked = self._changed = None
        self._whole = self._left = self._steps() + 1  # one more, in which the profiler itself warms up
        # Collected now: in a recorded step it would be seen as the training's own Python.
        self._metadata = self._facts(self._told())
        profiler = self._new(self._steps())
        self._guard.note("capture_started", self._reason)
        self._profiler = profiler
        self._ours(profiler.start)

    def _go_on(self, profiler: Profiler) -> None:
        self._left -= 1
        if self._left > 0:
            self._ours(profiler.step)
            return
        self._profiler = None
        self._sign(profiler)
        self._ours(profiler.step)
        self._ours(profiler.stop)
        self._ended_at = self._now()
        self._done(FinishedRecording(profiler, self._reason))

    def _ours(self, work: Callable[[], None]) -> None:
        self._ours_in = threading.get_ident()
        try:
            work()
        finally:
            self._ours_in = None

    def _told(self) -> dict[str, object]:
        told: dict[str, object] = {"capture_reason": self._reason}
        if self._unprofiled:
            told |= {"unprofiled_step_ns": self._step_ns(), "unprofiled_steps": len(self._unprofiled)}
        return told

    def _sign(self, profiler: Profiler) -> None:
        """torch takes metadata only while it records."""
        profiler.add_metadata_json("tb_bottleneck", self._metadata)
