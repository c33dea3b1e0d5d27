"""The monitor's own thread: reads the samplers, writes the event file and the heartbeat, compresses traces, and handles
requests for traces."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_bottleneck.monitor.capture.change_detector import ChangeDetector
from tb_bottleneck.monitor.capture.trace_capture import TraceCapture
from tb_bottleneck.monitor.capture.trace_files import TraceText, TraceWriter
from tb_bottleneck.monitor.guard import Guard, MonitorNote
from tb_bottleneck.monitor.samplers.sampler import Reading, Sampler
from tb_bottleneck.monitor.steps.row_queue import RowQueue, RowRateLimiter, StepRow
from tb_bottleneck.monitor.writer import encode
from tb_bottleneck.monitor.writer.event_file import EventFile
from tb_bottleneck.monitor.writer.heartbeat import LOOK_S, Heartbeat
from tb_bottleneck.monitor.writer.run_directory import CaptureRequests
from tb_bottleneck.schema.signals import CONTEXT_TAG, ENDED, PACKET_TAG

PACKET_S = 5.0
FIRST_PACKET_S = 1.0
FACTS_S = 60.0
"""Interval in s between collections of the facts. The facts are written only if they have changed."""
NO_STEPS_S = 60.0
MAX_READINGS = 20_000
MAX_REPEATED_NOTES = 64


@dataclass(frozen=True, slots=True)
class WriterInputs:
    """The inputs of the writer thread.

    `facts` returns the facts by name, `missing` the reasons for missing signals by name, and `hook_ns` the total time
    of the hooks in ns. `on_readings` is called with the readings of each sampler, from which some facts are derived.
    `check_machine` is called with the step after which a measurement of the machine is requested.
    """

    rows: RowQueue
    samplers: Sequence[Sampler]
    facts: Callable[[], Mapping[str, object]]
    missing: Callable[[], Mapping[str, str]]
    hook_ns: Callable[[], float]
    heartbeat: Heartbeat
    on_readings: Callable[[Sequence[Reading]], None]
    check_machine: Callable[[int], None]


class WriterThread:
    """The monitor's thread. Runs until `stop` is called. No exception reaches the training: a part that fails is
    disabled or tried again."""

    def __init__(
        self,
        directory: Path,
        inputs: WriterInputs,
        capture: TraceCapture,
        traces: TraceWriter,
        guard: Guard,
        every_s: float,
    ) -> None:
        self._directory = directory
        self._inputs = inputs
        self._capture = capture
        self._traces = traces
        self._guard = guard
        self._every_s = every_s
        self._samplers = dict(enumerate(inputs.samplers))
        self._due = dict.fromkeys(self._samplers, 0.0)
        self._readings: deque[encode.TimedReading] = deque(maxlen=MAX_READINGS)
        self._new_readings: list[Reading] = []
        self._texts: deque[TraceText] = deque()
        self._change_detector = ChangeDetector()
        self._rate_limiter = RowRateLimiter()
        self._capture_requests = CaptureRequests(directory)
        self._file: EventFile | None = None
        self._sequence = 0
        self._context_count = 0
        self._last_context: tuple[object, object] | None = None
        self._facts_at = float("-inf")
        self._notes: list[MonitorNote] = []
        self._all_notes: list[MonitorNote] = []
        self._last_step = -1
        self._began = time.monotonic()
        self._cost = (0.0, time.perf_counter_ns())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tb_bottleneck monitor", daemon=True)

    def start(self) -> None:
        """Opens the file and starts the thread. Raises OSError if the file cannot be written."""
        self._file = EventFile(self._directory)
        self._file.open()
        self._thread.start()

    def stop(self, within_s: float = 30.0) -> None:
        """Writes the remaining data and ends the thread. Waits at most `within_s` seconds, in case the disk hangs."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(within_s)

    def add_trace(self, text: TraceText) -> None:
        """Adds a recorded trace, which the monitor's thread will compress. Called on the training thread."""
        self._texts.append(text)

    def abandon(self) -> None:
        """Closes the files of traces that a forked process inherits. Called in the forked process, where the monitor's
        thread does not run."""
        while self._texts:
            self._texts.popleft().file.close()

    def _run(self) -> None:
        write_at = look_at = time.monotonic() + FIRST_PACKET_S
        while not self._stop.wait(max(0.0, min([write_at, look_at, *self._due.values()]) - time.monotonic())):
            self._sample()
            if time.monotonic() >= look_at:
                self._guard.call("heartbeat", self._inputs.heartbeat.beat)
                look_at = time.monotonic() + LOOK_S
            if time.monotonic() >= write_at:
                self._guard.call("writing", self._write)
                write_at = time.monotonic() + self._every_s
        self._guard.note(ENDED, "the monitor was stopped")
        self._guard.call("writing", self._write)
        self._guard.call("heartbeat", self._inputs.heartbeat.write, "ended")
        for sampler in self._samplers.values():
            self._guard.call("closing", sampler.close)
        if self._file is not None:
            self._guard.call("closing", self._file.close)

    def _sample(self) -> None:
        for index, sampler in list(self._samplers.items()):
            now = time.monotonic()
            if now < self._due[index]:
                continue
            self._due[index] = now + max(sampler.every_s, 0.05)
            signal = f"sampler {type(sampler).__name__}"
            readings = self._guard.call(signal, lambda sampler=sampler: list(sampler.read()))
            if readings is None:
                self._guard.call("closing", sampler.close)
                del self._samplers[index], self._due[index]
                continue
            moment = time.time_ns()
            self._readings.extend((moment, reading) for reading in readings)
            self._new_readings.extend(readings)
            self._guard.call("link", self._inputs.on_readings, readings)

    def _write(self) -> None:
        rows = self._inputs.rows.take()
        change = self._change_detector.add(rows)
        if change is not None:
            self._capture.run_changed(change)
        if self._capture_requests.take():
            self._capture.request("requested with tb-bottleneck capture")
        at_step = self._capture_requests.take_step()
        if at_step is not None:
            self._capture.request("requested with tb-bottleneck capture --job", at_step)
        machine_at = self._capture_requests.take_step("machine")
        if machine_at is not None:
            self._inputs.check_machine(machine_at)
        self._pack_traces()
        self._add_cost()
        self._guard.call("heartbeat", self._inputs.heartbeat.add, rows, self._new_readings)
        self._new_readings = []
        written = self._rate_limiter.filter(rows)
        if self._last_step < 0 and not rows and time.monotonic() - self._began > NO_STEPS_S:
            self._guard.note("no_steps", "no optimizer step was detected: call monitor.step() at the end of each step")
        if self._rate_limiter.merged:
            self._guard.note("merged", "steps are shorter than 40 ms: several typical steps are written as one row")
        readings = [self._readings.popleft() for _ in range(len(self._readings))]
        self._notes += self._guard.take_notes()
        try:
            self._append(written, rows, readings)
        except OSError as error:
            self._reopen(error)

    def _append(self, written: list[StepRow], rows: list[StepRow], readings: list[encode.TimedReading]) -> None:
        if self._file is None:
            raise OSError("there is no event file")
        self._write_context()
        offset = time.time_ns() - time.perf_counter_ns()
        packet = encode.packet(self._sequence, written, offset, readings, self._notes)
        self._sequence += 1  # even if writing fails: a missing number shows a lost packet
        self._file.write(encode.message_event(PACKET_TAG, packet, self._sequence - 1))
        self._all_notes = (self._all_notes + self._notes)[-MAX_REPEATED_NOTES:]
        self._notes = []
        if rows and rows[-1].number > self._last_step:
            self._last_step = rows[-1].number
            values = encode.scalars(rows, readings)
            if values:
                self._file.write(encode.scalars_event(values, self._last_step))

    def _write_context(self) -> None:
        now = time.monotonic()
        if now - self._facts_at < FACTS_S and self._context_count > 1 and not self._notes:
            return
        self._facts_at = now
        facts, missing = dict(self._inputs.facts()), self._missing()
        if (facts, missing) == self._last_context or self._file is None:
            return
        message = encode.context(facts, missing, [*self._all_notes, *self._notes])
        self._file.write(encode.message_event(CONTEXT_TAG, message, self._context_count))
        self._context_count += 1
        self._last_context = (facts, missing)

    def _missing(self) -> dict[str, str]:
        missing = dict(self._inputs.missing())
        for sampler in self._samplers.values():
            missing |= self._guard.call(f"sampler {type(sampler).__name__}", sampler.missing) or {}
        return missing | self._guard.missing()

    def _pack_traces(self) -> None:
        while self._texts:
            self._traces.pack(self._texts.popleft())
            self._change_detector.reset()

    def _add_cost(self) -> None:
        spent, now = time.thread_time_ns() + self._inputs.hook_ns(), time.perf_counter_ns()
        before, then = self._cost
        self._cost = (spent, now)
        if now > then:
            self._readings.append((time.time_ns(), Reading("monitor_cost", (spent - before) / (now - then))))

    def _reopen(self, error: OSError) -> None:
        """Begins a new file if the current file does not end with a whole event. `error` is the reason why the last
        packet could not be written; this packet is lost."""
        self._guard.warn_of_disk(error)
        self._guard.note("dropped", f"a packet could not be written: {type(error).__name__}")
        if self._file is not None and self._file.is_whole():
            return
        if self._file is not None:
            self._file.close()
        self._file = None
        fresh = EventFile(self._directory)
        try:
            fresh.open()
        except OSError:
            return  # tried again with the next packet; the note above reports it
        self._file = fresh
