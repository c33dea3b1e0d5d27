"""Traces are recorded at the right steps and never disturb the training. Times are in milliseconds here."""

import itertools
import json

import pytest

from tb_bottleneck.monitor.capture.line_samples import LineSampler, Sample
from tb_bottleneck.monitor.capture.trace_capture import (
    COOL_DOWN_GROWS,
    COOL_DOWN_NS,
    CaptureLimits,
    FinishedRecording,
    TraceCapture,
)
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.steps.row_queue import StepRow

MS = 1_000_000


class Fake:
    """A profiler that records the calls of its methods."""

    def __init__(self, steps: int, fails_in: str = "") -> None:
        self.steps = steps
        self.done: list[str] = []
        self.metadata: dict[str, object] = {}
        self._fails_in = fails_in

    def _did(self, what: str) -> None:
        self.done.append(what)
        if what == self._fails_in:
            raise RuntimeError("Can't disable Kineto profiler when it's not running")

    def start(self) -> None:
        self._did("start")

    def step(self) -> None:
        self._did("step")

    def stop(self) -> None:
        self._did("stop")

    def add_metadata_json(self, key: str, value: str) -> None:
        assert "stop" not in self.done, "torch takes metadata only while it records"
        self.metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str) -> None:
        raise AssertionError("nothing is written on the training thread")


class FakeSampler(LineSampler):
    """Starts no thread."""

    def start(self) -> None:
        self.started = True

    def stop(self) -> list[Sample]:
        started, self.started = getattr(self, "started", False), False
        return [("train.py", 1, "main", 3, 7)] if started else []


class Training:
    """Steps of a given length. While a fake profiler is open, a step is profiled and takes `slowed` times as long."""

    def __init__(
        self,
        limits: CaptureLimits | None = None,
        step_ms: float = 100,
        fails_in: str = "",
        fetched_ahead: int = 0,
        slowed: float = 1.9,
    ) -> None:
        self.fetched_ahead = fetched_ahead
        self.slowed = slowed
        self.now = 0
        self.step_ms = step_ms
        self.number = 0
        self.busy = False
        self.profilers: list[Fake] = []
        self.recorded: list[FinishedRecording] = []
        self.guard = Guard()

        def new(steps: int) -> Fake:
            self.profilers.append(Fake(steps, fails_in))
            return self.profilers[-1]

        self.captures = TraceCapture(
            new,
            lambda: self.busy,
            json.dumps,
            self.recorded.append,
            self.guard,
            limits or CaptureLimits(),
            lambda: self.now,
            lines=FakeSampler(),
        )

    def run(self, steps: int) -> None:
        for _ in range(steps):
            profiled = self.captures.running or self.busy
            took = int(self.step_ms * MS * (self.slowed if profiled else 1))
            self.now += took
            figures = {"profiled": float(profiled), "loader_wait": took / 4, "backward": took / 2}
            self.captures.advance(StepRow(self.number, self.now, took, figures), self.fetched_ahead)
            self.number += 1


def test_the_first_trace_comes_after_warm_up_and_says_how_long_an_unprofiled_step_takes() -> None:
    training = Training()
    training.run(29)
    assert training.profilers == []
    training.run(1)
    assert [profiler.done for profiler in training.profilers] == [["start"]]
    training.run(7)
    (profiler,) = training.profilers
    assert profiler.done == ["start", *["step"] * 7, "stop"]
    assert [list(recorded.samples) for recorded in training.recorded] == [[("train.py", 1, "main", 3, 7)]]
    facts = profiler.metadata["tb_bottleneck"]
    assert facts["unprofiled_step_ns"] == 100 * MS
    assert facts["unprofiled_steps"] == 20
    assert facts["unprofiled_step_times_ns"] == [100 * MS] * 20
    assert facts["unprofiled_loader_ns"] == 25 * MS
    assert facts["unprofiled_backward_ns"] == 50 * MS
    assert facts["unprofiled_optimizer_ns"] == 0, "none ran"
    assert len(training.recorded) == 1


@pytest.mark.parametrize(
    ("step_ms", "slowed", "steps"), [(100, 4, 2), (100, 1.9, 6), (300, 1.4, 6), (5, 20, 6), (10, 20, 2)]
)
def test_a_trace_is_short_if_the_profiler_slows_the_steps_a_lot(step_ms: float, slowed: float, steps: int) -> None:
    training = Training(step_ms=step_ms, slowed=slowed)
    training.run(2000)
    (profiler,) = training.profilers
    assert profiler.done == ["start", *["step"] * (steps + (steps == 6)), "stop"]
    assert len(training.recorded) == 1
    training.now += 2 * COOL_DOWN_NS
    training.captures.run_changed("the step time doubled")
    training.run(30)
    assert len(training.profilers) == (1 if steps == 2 else 2)


def without_stacks(**options: float) -> Training:
    training = Training(**options)  # type: ignore[arg-type]
    training.captures.stop_stacks = lambda: training.profilers[-1].done.append("stop stacks")
    return training


def test_the_last_steps_of_a_trace_have_no_stacks() -> None:
    training = without_stacks()
    training.run(40)
    (profiler,) = training.profilers
    assert profiler.steps == 9
    assert profiler.done == ["start", *["step"] * 7, "stop stacks", *["step"] * 3, "stop"]
    assert profiler.metadata["tb_bottleneck_steps_with_stacks"] == 6
    assert [list(recorded.samples) for recorded in training.recorded] == [[("train.py", 1, "main", 3, 7)]]


def test_a_trace_that_is_cut_short_has_a_step_without_stacks_too() -> None:
    training = without_stacks(slowed=4)
    training.run(40)
    (profiler,) = training.profilers
    assert profiler.done == ["start", *["step"] * 3, "stop stacks", "stop"], "its own schedule has more steps"
    assert profiler.metadata["tb_bottleneck_steps_with_stacks"] == 2
    assert len(training.recorded) == 1


@pytest.mark.parametrize(("steps", "with_stacks"), [(36, None), (37, 6), (38, 6)])
def test_a_training_that_ends_during_these_steps_keeps_its_trace(steps: int, with_stacks: int | None) -> None:
    training = without_stacks()
    training.run(steps)
    training.captures.finish()
    (profiler,) = training.profilers
    assert profiler.metadata.get("tb_bottleneck_steps_with_stacks") == with_stacks
    assert [list(recorded.samples) for recorded in training.recorded] == [[("train.py", 1, "main", 3, 7)]]


def test_all_ranks_record_the_same_steps_however_slow() -> None:
    training = Training(CaptureLimits(together=True), slowed=4)
    training.run(60)
    assert training.profilers[0].done.count("step") == 7


def test_what_the_loader_had_ready_is_not_its_pace() -> None:
    training = Training(fetched_ahead=16)
    training.run(45)
    assert training.profilers == []
    training.run(1)
    assert len(training.profilers) == 1


def test_a_steady_run_is_recorded_once() -> None:
    training = Training()
    training.run(5000)
    assert len(training.recorded) == 1


@pytest.mark.parametrize(("step_ms", "steps"), [(1, 6), (100, 6), (800, 3), (2500, 2)])
def test_a_window_has_six_steps_or_as_many_as_three_seconds_hold(step_ms: float, steps: int) -> None:
    training = Training(step_ms=step_ms)
    training.run(60)
    assert training.profilers[0].steps == steps


def test_slow_steps_are_recorded_after_half_a_minute_of_them() -> None:
    training = Training(step_ms=8000)
    training.run(16)
    assert len(training.profilers) == 1


def test_ranks_of_one_job_choose_the_same_steps_whatever_the_clock_says() -> None:
    starts = []
    for step_ms in (7900, 8100):
        training = Training(CaptureLimits(together=True), step_ms=step_ms)
        while not training.profilers:
            training.run(1)
        starts.append((training.number, training.profilers[0].steps))
    assert starts == [(30, 2), (30, 2)]


def test_steps_of_minutes_are_recorded_on_request_only() -> None:
    training = Training(step_ms=40_000)
    training.run(100)
    assert training.profilers == []
    training.captures.request("asked")
    training.run(4)
    assert len(training.recorded) == 1


def test_a_changed_run_is_recorded_after_ten_seconds_then_after_a_minute() -> None:
    """A run whose steps become longer and longer gets traces of its start and of later steps, and not all at once."""
    training = Training()
    ends = []
    for _ in range(5000):
        training.captures.run_changed("steps became longer")
        training.run(1)
        if len(training.recorded) > len(ends):
            ends.append(training.now)
    assert [one.reason for one in training.recorded] == ["the first after warm-up", *["steps became longer"] * 3]
    apart = [(later - earlier) / 1e9 for earlier, later in itertools.pairwise(ends)]
    assert apart == pytest.approx([COOL_DOWN_GROWS**n * COOL_DOWN_NS / 1e9 for n in range(3)], rel=0.5)


def test_traces_that_take_long_are_rare() -> None:
    training = Training(step_ms=2500)  # two steps of a trace take 5 s
    training.run(30)
    assert len(training.recorded) == 1
    training.captures.run_changed("steps became longer")
    training.run(30)
    assert len(training.recorded) == 1, "75 s later"
    training.run(40)
    assert len(training.recorded) == 2


def test_traces_are_bounded_in_number() -> None:
    training = Training(CaptureLimits(automatic=3, requested=2))
    for _ in range(10):
        training.captures.run_changed("steps became longer")
        training.run(700)
    assert len(training.recorded) == 3
    for _ in range(10):
        training.captures.request("asked")
        training.run(50)
    assert len(training.recorded) == 5


def test_a_request_too_many_does_not_end_the_others() -> None:
    """A request above the limit must be dropped: it blocked all later traces, even of a change."""
    training = Training(CaptureLimits(automatic=2, requested=0))
    training.run(50)
    training.captures.request("asked")
    training.captures.run_changed("steps became longer")
    training.run(700)
    assert [one.reason for one in training.recorded] == ["the first after warm-up", "steps became longer"]
    assert "dropped" in [note.code for note in training.guard.take_notes()]


def test_facts_are_collected_before_the_profiler_begins() -> None:
    """When they were collected in the last recorded step, the trace contained our own Python code: a quarter of the
    time between its steps, and an interruption."""
    training = Training()
    during: list[int] = []
    training.captures._make_metadata = lambda facts: (during.append(len(training.profilers)), json.dumps(facts))[1]
    training.run(40)
    assert during == [0]
    assert "capture_reason" in training.profilers[0].metadata["tb_bottleneck"]


def test_none_is_recorded_where_none_is_allowed() -> None:
    training = Training(CaptureLimits(automatic=0))
    training.run(500)
    assert training.profilers == []
    training.captures.request("asked")
    training.run(10)
    assert len(training.recorded) == 1


def test_ours_waits_for_the_trainings_own_profiler_to_end() -> None:
    training = Training()
    training.busy = True
    training.run(100)
    assert training.profilers == []
    training.busy = False
    training.run(30)
    assert len(training.recorded) == 1


def test_ours_is_thrown_away_when_the_trainings_own_begins() -> None:
    training = Training()
    training.run(32)
    training.captures.cancel()
    assert training.profilers[0].done[-1] == "stop"
    assert not training.captures.running
    training.run(200)
    assert training.recorded == []
    assert "capture_dropped" in [note.code for note in training.guard.take_notes()]


def test_what_begins_on_another_thread_ends_ours_with_the_next_step() -> None:
    training = Training()
    training.run(32)
    training.captures.cancel(at_once=False)
    assert training.captures.running
    training.run(1)
    assert training.profilers[0].done[-1] == "stop"
    assert not training.captures.running
    training.run(100)
    assert training.recorded == []


@pytest.mark.parametrize(("steps", "kept"), [(30, 0), (31, 0), (32, 1), (36, 1)])
def test_a_window_that_the_end_cuts_is_kept_if_it_has_a_whole_step(steps: int, kept: int) -> None:
    training = Training()
    training.run(steps)
    training.captures.finish()
    assert training.profilers[0].done[-1] == "stop"
    assert len(training.recorded) == kept


@pytest.mark.parametrize("place", ["start", "step", "stop"])
def test_a_profiler_that_fails_ends_traces_and_nothing_else(place: str) -> None:
    training = Training(fails_in=place)
    training.run(200)
    assert len(training.profilers) == 1
    assert not training.captures.running
    assert training.recorded == []
    assert training.profilers[0].done[-1] == "stop"
    assert training.guard.missing().keys() >= {"traces"}


def test_our_own_calls_are_known_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """They pass through the same hooked methods of torch as calls of the training's own profiler."""
    training = Training()
    seen: list[bool] = []
    monkeypatch.setattr(Fake, "_did", lambda self, what: seen.append(training.captures.is_own_call()))
    training.run(40)
    assert seen == [True] * 9
    assert not training.captures.is_own_call()
