"""Compiling that takes much of a run is a cause, also before the steps that are judged."""

import numpy as np
import pytest
from helpers.telemetry_rows import BEGIN, MS, packet, recording_of

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.interruption import telemetry_rule as interruption
from tb_bottleneck.bottlenecks.interruption.run_time import recompiled_places
from tb_bottleneck.bottlenecks.rule_types import FIRES
from tb_bottleneck.measures.measure_set import Measures


def judged(seconds: float, reason: str, times: int = 4, recording_ms: float = 0.0):
    """Returns the judgement of 2 s of steps after compilations of so many seconds each, the first step included.

    The profiler records six of the steps, which then take `recording_ms` longer.
    """
    each = seconds * 1000
    wall = np.full(200, 10.0)
    wall[0] += times * each
    profiled = np.where((np.arange(200) >= 60) & (np.arange(200) < 66), 1.0, 0.0)
    wall += recording_ms * profiled
    log = [
        [f"0/{n}", "f", "train.py", 3, (BEGIN + (n * each) * MS) / 1000, each * 1000, reason if n else ""]
        for n in range(times)
    ]
    recording = recording_of(packet(wall, profiled=profiled), {"compile_log": {"compilations": log}})
    return interruption.judge(Measures(recording))


@pytest.mark.parametrize(
    ("seconds", "reason", "cause", "recurs"),
    [(2.0, "a size differs", "recompilation", True), (2.0, "", "compilation", False)],
)
def test_a_run_that_mostly_compiles_says_so(seconds, reason, cause, recurs):
    judgement = judged(seconds, reason)
    (found,) = judgement.causes
    assert (judgement.status, found.name, found.recurs) == (FIRES, cause, recurs)
    assert found.cost_share == pytest.approx((3 if reason else 4) * seconds / (2 + 4 * seconds), abs=0.01)
    assert bool(judgement.recoverable) == recurs


def test_the_time_of_recording_traces_is_no_part_of_the_run_without_the_monitor():
    (found,) = judged(2.0, "a size differs", recording_ms=5000.0).causes
    assert found.cost_share == pytest.approx(6 / 10, abs=0.01)


def test_each_step_compiles_forward_and_backward():
    """The share is that of the steps, 90 %; in the whole run, whose first steps compile nothing, it is 45 %."""
    wall, compiling = np.full(200, 10.0), np.arange(200) >= 100
    ends = BEGIN / 1000 + np.cumsum(wall) * 1000
    log = [
        entry
        for n, end in enumerate(ends[compiling].tolist())
        for entry in (
            [f"0/{n + 1}", "f", "train.py", 3, end - 10_000, 6_000.0, "a size differs"],
            [f"0/{n + 1}", "", "", 0, end - 3_000, 3_000.0, ""],  # the graph of the backward pass
        )
    ]
    profiled = np.where(compiling, 0.0, 1.0)
    recording = recording_of(packet(wall, profiled=profiled), {"compile_log": {"compilations": log}})
    (found,) = interruption.judge(Measures(recording)).causes
    assert found.name == "recompilation"
    assert found.cost_share == pytest.approx(0.9, abs=0.01)
    assert not found.bounded, "the rest of the step may be guards"
    (place,) = recompiled_places(recording)
    assert (place.file, place.line, place.share) == ("train.py", 3, pytest.approx(1.0))


def test_guards_and_first_calls_of_new_code_belong_to_the_bound():
    (found,) = judged(1.0, "a size differs", times=2).causes
    assert found.bounded
    assert found.cost_share == pytest.approx(0.25, abs=0.01)
    assert found.most == pytest.approx(found.cost_share * 1.14)


@pytest.mark.parametrize(("times", "cause"), [(3, "recompilation"), (1, "compilation")])
def test_compilations_are_named_by_what_most_of_them_are(times, cause):
    """29 % of the time is compilation: two thirds of it again, which is less than a quarter, or none."""
    (found,) = judged(0.825 / times, "a size differs", times).causes
    assert found.name == cause


def test_a_little_compiling_at_the_start_is_no_cause():
    assert not judged(0.05, "a size differs").causes
    assert interruption.RULE.regime == Regime.INTERRUPTION
