"""Records traces automatically: a short window of torch.profiler after warm-up, on request, and after a change.

    step     0 ............ 10 ......... 30 ... 37
             warm-up        unprofiled   trace        later: on request, after a change
             (and batches fetched ahead)

Recording stacks slows Python code. In a run on the CPU, the last third of the recorded steps therefore has no stacks:
these steps show how long the code between two operators takes.

Everything runs on the training thread between two steps, except the compression of the file.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from tb_bottleneck.monitor.capture.line_samples import LineSampler, Sample
from tb_bottleneck.monitor.guard import Guard, interrupts_held
from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.monitor.torch_internals import is_in_backward
from tb_bottleneck.schema.signals import CAPTURE_STARTED

SIGNAL = "traces"
WARM_UP_STEPS = 10
"""Number of first steps that do not count, because kernels run for the first time, algorithms are tuned, and the
allocator requests memory."""
MEASURED_STEPS = 20
"""Unprofiled steps before a trace, to measure how much the profiler slows the steps."""
PARTS = {
    "loader_wait": "unprofiled_loader_ns",
    "backward": "unprofiled_backward_ns",
    "optimizer": "unprofiled_optimizer_ns",
}
"""A dict: step column of a part of the step -> name of the fact with its median time in the unprofiled steps. Each part
is measured, because the profiler slows the parts differently."""
MEASURED_SLOW_STEPS, SLOW_NS = 5, 30_000_000_000
"""MEASURED_SLOW_STEPS unprofiled steps are enough if they took SLOW_NS in total."""
MIN_STEPS, MAX_STEPS, WINDOW_NS = 2, 6, 3_000_000_000
"""A window has six steps with stacks, or fewer (at least two) if six would take longer than three seconds. On the CPU,
steps without stacks are added."""
STACKLESS = 2
"""Number of steps with stacks for each step without stacks."""
STEP_TOO_LONG_NS = 30_000_000_000
"""Longer steps are recorded on request only, because their traces become too large to read."""
COOL_DOWN_NS, COOL_DOWN_GROWS = 10_000_000_000, 6
"""Pause in ns between a trace and the next trace of a changed run, and the factor by which each further pause grows. A
run that becomes slower and slower gets traces after about 10 s, a minute, six minutes and half an hour."""
COOL_DOWN_OF_COST = 20
"""Minimum of the ratio (pause / time by which the last recording delayed the training). Recordings therefore cost at
most a twentieth of the time."""
SLOWED, SLOWED_NS = 1.5, 100_000_000
"""A window is shortened if its steps are longer than steps without the profiler, both by the factor SLOWED and by the
time SLOWED_NS. A shortened window has at least MIN_STEPS steps with stacks.

Measured with 320,000 calls of Python functions per step: steps of 120 ms took 306 ms. Ending a recording of six steps
stopped the training for 16 s and took 2.9 GB of memory; ending a recording of two steps took 4.7 s and 1.0 GB.
"""
LATE_METADATA_KEY = "tb_bottleneck_late"
"""The key in a trace of the facts that changed during the recording."""
STEPS_WITH_STACKS_KEY = "tb_bottleneck_steps_with_stacks"
"""The key in a trace of the number of recorded steps after which stacks were turned off."""


class Profiler(Protocol):
    """The part of torch.profiler.profile that the monitor uses."""

    @property
    def profiler(self) -> Any: ...
    def start(self) -> None: ...
    def step(self) -> None: ...
    def stop(self) -> None: ...
    def add_metadata_json(self, key: str, value: str) -> None: ...
    def export_chrome_trace(self, path: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class FinishedRecording:
    """A finished recording that is not yet written to a file. `reason` says why the trace was recorded."""

    profiler: Profiler
    reason: str
    samples: Sequence[Sample] = ()
    """Lines of the program that ran while the steps with stacks were recorded, the most frequent first
    (line_samples.py)."""


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """Limits on the number of traces: at most `automatic` traces are recorded without a request, and at most
    `requested` traces on request."""

    automatic: int = 5
    requested: int = 20
    together: bool = False
    """True with several ranks. All ranks must then record the same steps, so that no rank is slowed while the others
    are not."""


class TraceCapture:
    """Decides at each step, in `advance`, whether to start or end a recording. Passes finished recordings to `done`.

    `new` creates a profiler for a number of steps. `busy` returns True if another profiler runs. `metadata` gets
    additional facts, and returns the trace's metadata with these facts as JSON text. `late_metadata` returns the JSON
    text of the facts that changed during the recording, or None; it must be quick, because it runs in the last recorded
    step. `now` returns the time in ns.
    """

    def __init__(
        self,
        new: Callable[[int], Profiler],
        busy: Callable[[], bool],
        metadata: Callable[[dict[str, object]], str],
        done: Callable[[FinishedRecording], None],
        guard: Guard,
        limits: CaptureLimits,
        now: Callable[[], int] = time.perf_counter_ns,
        late_metadata: Callable[[], str | None] = lambda: None,
        lines: LineSampler | None = None,
    ) -> None:
        self._new, self._busy, self._make_metadata, self._done = new, busy, metadata, done
        self._late_metadata = late_metadata
        self._lines = lines or LineSampler()
        self._samples: Sequence[Sample] = ()
        self.stop_stacks: Callable[[], None] | None = None
        """Turns off the stacks in the open recording. If None, all recorded steps have stacks."""
        self._guard = guard
        self._now = now
        self._automatic_left = limits.automatic
        self._requests_left = limits.requested
        self._together = limits.together
        self._unprofiled: deque[float] = deque(maxlen=64)
        self._parts: dict[str, deque[float]] = {name: deque(maxlen=64) for name in PARTS}
        self._requested_reason: str | None = None
        self._requested_step = 0
        self._next_step = 0
        self._change: str | None = None
        self._profiler: Profiler | None = None
        self._reason = self._metadata = ""
        self._window_steps = self._steps_left = self._steps_without_stacks = self._planned_steps = 0
        self._recording_since = 0
        self._started_at = 0
        self._ended_at: int | None = None
        self._next_cool_down_ns = COOL_DOWN_NS
        self._cool_down_ns = float(COOL_DOWN_NS)
        self._own_call_on: int | None = None
        self._cancelled = False

    @property
    def running(self) -> bool:
        """True while a recording is open."""
        return self._profiler is not None

    def request(self, reason: str, at_step: int = 0) -> None:
        """Requests a trace of the next steps, or of the steps from number `at_step` on. `reason` is stored with the
        trace. Any thread may call this."""
        self._requested_step = at_step
        self._requested_reason = reason

    def run_changed(self, reason: str) -> None:
        """Requests a new trace because the run has changed; `reason` says how. Any thread may call this."""
        self._change = reason

    def advance(self, row: StepRow, fetched_ahead: int = 0) -> None:
        """Handles the end of the step `row`. The loader prefetched `fetched_ahead` batches before the first step. The
        steps that use these batches are not measured, because they do not show the rate of the loader.

        A Ctrl-C while a profiler starts or stops takes effect afterwards. Some trainings step their optimizer inside
        the backward pass. This method then only records a note, because torch 2.13 crashed when a recording ended
        there."""
        if is_in_backward():
            self._guard.note("no_capture", "the optimizer steps in the backward pass, where a recording cannot end")
            return
        if self._profiler is not None:
            with interrupts_held():
                self._go_on(self._profiler)
            return
        if not row.figures.get("profiled") and row.number >= WARM_UP_STEPS + fetched_ahead:
            self._unprofiled.append(row.working_ns)
            for name, times in self._parts.items():
                times.append(row.figures.get(name, 0.0))
        self._next_step = row.number + 1
        reason = self._due_reason()
        if reason is not None and not self._busy():
            with interrupts_held():
                self._try(self._start, reason)

    def _go_on(self, profiler: Profiler) -> None:
        if self._cancelled:
            self._drop()
        else:
            self._try(self._continue, profiler)

    def is_own_call(self) -> bool:
        """Returns True if the monitor itself calls a profiler on this thread now."""
        return self._own_call_on == threading.get_ident()

    def cancel(self, at_once: bool = True) -> None:
        """Discards the open recording, because another profiler begins, and two profilers cannot run at the same time.

        `at_once` may be True on the training thread only. Other threads pass False: the recording is then discarded at
        the end of the open step."""
        if self._profiler is None:
            return
        self._guard.note("capture_dropped", "the training's own profiler began")
        if at_once:
            self._drop()
        else:
            self._cancelled = True

    def _try(self, work: Callable[..., None], *arguments: object) -> None:
        """Calls `work`. If it fails, disables capturing and closes an open recording."""
        profiler = self._profiler
        self._guard.call(SIGNAL, work, *arguments)
        if not self._guard.is_on(SIGNAL):
            self._lines.stop()
            profiler, self._profiler = self._profiler or profiler, None
            if profiler is not None:
                self._guard.call("ending a trace", self._call_own, profiler.stop)

    def _drop(self) -> None:
        profiler, self._profiler = self._profiler, None
        self._lines.stop()
        self._cancelled = False
        self._ended_at = self._now()
        if profiler is not None:
            self._guard.call(SIGNAL, self._call_own, profiler.stop)

    def finish(self) -> None:
        """Closes an open recording at the end of the training. Keeps the recording if it has at least one whole
        step."""
        if self._cancelled:
            self._drop()
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        samples = self._samples or self._lines.stop()
        has_a_step = self._window_steps - self._steps_left >= 2
        if has_a_step:
            self._guard.call(SIGNAL, self._add_metadata, profiler)
        self._guard.call(SIGNAL, self._call_own, profiler.stop)
        if has_a_step and self._guard.is_on(SIGNAL):
            self._done(FinishedRecording(profiler, self._reason, samples))

    def _due_reason(self) -> str | None:
        if self._requested_reason is not None and self._requests_left > 0:
            if self._next_step >= self._requested_step:
                return "requested"
        elif self._requested_reason is not None:
            self._guard.note(
                "dropped", "a requested trace was not recorded: the run has reached its limit of requested traces"
            )
            self._requested_reason = None
        if self._automatic_left <= 0 or not self._unprofiled:
            return None
        if self._ended_at is None:
            reason = "first" if self._warmed_up() else None
        else:
            due = self._change is not None and self._now() - self._ended_at > self._cool_down_ns
            reason = "changed" if due else None
        return reason if reason is not None and self._step_ns() <= STEP_TOO_LONG_NS else None

    def _warmed_up(self) -> bool:
        measured = len(self._unprofiled)
        slow = measured >= MEASURED_SLOW_STEPS and sum(self._unprofiled) >= SLOW_NS
        return measured >= MEASURED_STEPS or (slow and not self._together)

    def _step_ns(self) -> float:
        return median(self._unprofiled) if self._unprofiled else 0.0

    def _steps(self) -> int:
        return max(MIN_STEPS, min(MAX_STEPS, int(WINDOW_NS / max(self._step_ns(), 1.0))))

    def _start(self, reason: str) -> None:
        if reason == "requested":
            self._requests_left -= 1
        else:
            self._automatic_left -= 1
        reasons = {"requested": self._requested_reason, "changed": self._change}
        self._reason = reasons.get(reason) or "the first after warm-up"
        self._requested_reason = self._change = None
        steps, self._samples = self._steps(), ()
        self._steps_without_stacks = 0 if self.stop_stacks is None else steps // STACKLESS
        self._planned_steps = steps + self._steps_without_stacks
        self._window_steps = self._steps_left = self._planned_steps + 1  # and one warm-up step of the profiler
        # Collected now: in a recorded step it would look like the training's own Python code.
        self._metadata = self._make_metadata(self._capture_facts())
        self._started_at = self._now()
        profiler = self._new(self._planned_steps)
        self._guard.note(CAPTURE_STARTED, self._reason)
        self._profiler = profiler
        self._call_own(profiler.start)

    def _continue(self, profiler: Profiler) -> None:
        self._steps_left -= 1
        recorded = self._window_steps - 1 - self._steps_left
        with_stacks_left = self._steps_left - self._steps_without_stacks
        too_slow = recorded >= MIN_STEPS and with_stacks_left > 0 and self._is_slowed(recorded)
        if too_slow:
            self._automatic_left = 0
            self._guard.note("capture_shortened", "the profiler slows the steps; there are no more automatic traces")
            with_stacks_left, self._steps_left = 0, min(self._steps_without_stacks, recorded // STACKLESS)
            self._window_steps = 1 + recorded + self._steps_left
        if self._steps_left > 0:
            self._call_own(profiler.step)
            if recorded == 0:
                self._recording_since = self._now()
                self._guard.call("lines", self._lines.start)
            elif with_stacks_left == 0:
                self._end_stacks(profiler, recorded)
            return
        self._profiler = None
        samples = self._samples or self._lines.stop()
        self._add_metadata(profiler)
        if recorded == self._planned_steps:  # a shortened window ends before the profiler's own schedule does
            self._call_own(profiler.step)
        self._call_own(profiler.stop)
        self._ended_at = self._now()
        cost = self._ended_at - self._started_at - (recorded + 1) * self._step_ns()
        self._cool_down_ns = max(self._next_cool_down_ns, COOL_DOWN_OF_COST * cost)
        self._next_cool_down_ns *= COOL_DOWN_GROWS
        self._done(FinishedRecording(profiler, self._reason, samples))

    def _end_stacks(self, profiler: Profiler, recorded: int) -> None:
        """Turns off the stacks after `recorded` steps with stacks. The line samples that were taken so far belong to
        these steps."""
        self._samples = self._lines.stop()
        if self.stop_stacks is not None:
            self.stop_stacks()
            profiler.add_metadata_json(STEPS_WITH_STACKS_KEY, str(recorded))

    def _is_slowed(self, recorded: int) -> bool:
        """Returns True if the `recorded` steps took much longer than steps without a profiler. Always False with
        several ranks, because all ranks must record the same steps."""
        taken, usual = (self._now() - self._recording_since) / recorded, self._step_ns()
        return not self._together and 0 < usual < min(taken / SLOWED, taken - SLOWED_NS)

    def _call_own(self, work: Callable[[], None]) -> None:
        self._own_call_on = threading.get_ident()
        try:
            work()
        finally:
            self._own_call_on = None

    def _capture_facts(self) -> dict[str, object]:
        facts: dict[str, object] = {"capture_reason": self._reason}
        if self._unprofiled:
            facts |= {"unprofiled_step_ns": self._step_ns(), "unprofiled_steps": len(self._unprofiled)}
            facts |= {"unprofiled_step_times_ns": [round(time) for time in self._unprofiled]}
            facts |= {fact: median(self._parts[name]) for name, fact in PARTS.items()}
        return facts

    def _add_metadata(self, profiler: Profiler) -> None:
        """Adds the facts about the process to the trace. Must be called while the profiler records: torch ignores
        metadata at other times."""
        profiler.add_metadata_json("tb_bottleneck", self._metadata)
        late = self._guard.call("late metadata", self._late_metadata)
        if late is not None:
            profiler.add_metadata_json(LATE_METADATA_KEY, late)
