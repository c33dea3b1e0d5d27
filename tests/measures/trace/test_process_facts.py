"""Tests recorded facts of the training process, and the overhead of the profiler per step."""

import json

import numpy as np
import pytest
from helpers.draw import drawn, drawn_trace
from helpers.drawn_graphs import drawn_recording

from tb_bottleneck.attribution.profiler_time.logged_steps import LoggedSteps, logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.compute.kernels import cores, torch_threads
from tb_bottleneck.bottlenecks.launch.rule import RECOVERABLE_OF_LAUNCHES, RULE
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.profiler_overhead import atypical_ratio, profiler_overhead, unprofiled_step
from tb_bottleneck.measures.trace.process_facts import (
    loader_pins,
    on_windows,
    product_library,
    worker_start_method,
    workers_persist,
)
from tb_bottleneck.quality.degradations import degradations_of, overhead_defect
from tb_bottleneck.trace.steps import find_steps

DRAWING = """
    step    aaaaaaaaaabbbbbbbbbb
    gpu     .aaa.bbb...aaa.bbb..
"""


def recorded(**context):
    trace = drawn_trace(DRAWING, tb_bottleneck={"context": context})
    return Recording(trace, find_steps(trace))


def test_recorded_facts_are_cited_as_they_are():
    recording = recorded(
        os="Windows", worker_start="spawn", persistent_workers=False, pin_memory=True, torch_blas="mkl"
    )
    measures = (on_windows, worker_start_method, workers_persist, loader_pins, product_library)
    assert [measure(recording).text for measure in measures] == ["Windows", "spawn", "False", "True", "mkl"]


def test_another_operating_system_is_not_mentioned():
    assert isinstance(on_windows(recorded(os="Linux")), Missing)


@pytest.mark.parametrize("untrusted", [None, 7, ["spawn"], "<b>spawn</b>", "s" * 41, ""])
def test_other_values_are_not_shown(untrusted):
    recording = recorded(worker_start=untrusted, persistent_workers=untrusted)
    assert isinstance(worker_start_method(recording), Missing)
    assert isinstance(workers_persist(recording), Missing)


@pytest.mark.parametrize("wrong", [10**400, -1, 0, True, "many", None, [2]], ids=repr)
def test_numbers_of_cores_and_threads_are_positive_and_finite(wrong):
    recording = recorded(cores=wrong, torch_threads=2)
    assert isinstance(cores(recording), Missing)
    assert torch_threads(recording).value == 2


# Steps of 10 us; in each the host dispatches for 6 us before it launches: launch owns 60 % of the time.
LAUNCH_BOUND = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ######....######....######....
    launch  .....|.........|.........|....
    gpu     ......aaaa......bbbb......cccc
"""


ROWS = {"step": "", "op": "######....", "launch": ".....||...", "gpu": "......aabb"}
# The device waits for a synchronization, not for launches: the profiler's time is not removed from that.
WAITING = {"step": "", "op": "#.....##..", "sync": ".#####....", "launch": "......||..", "gpu": "......aabb"}
LONGER, LONGER_WAITING = (
    "\n".join(f"{name} {row * 6 or ''.join(letter * 10 for letter in 'abcdef')}" for name, row in rows.items())
    for rows in (ROWS, WAITING)
)


def slowed(**context):
    trace = drawn_trace(LAUNCH_BOUND, 1, tb_bottleneck={"context": context})
    return Recording(trace, find_steps(trace))


def test_the_overhead_is_what_a_step_takes_longer():
    recording = slowed(unprofiled_step_ns=7_000)
    assert unprofiled_step(recording).value == 7_000
    assert profiler_overhead(recording).value == pytest.approx(0.3, abs=0.01)
    defect = overhead_defect(recording)
    assert (defect.code, defect.fatal, defect.facts["pause"]) == ("profiler_overhead", False, 7_000)
    assert "profiler_inflated" not in [found.code for found in degradations_of(recording)]


@pytest.mark.parametrize(
    ("options", "reason", "fix"),
    [
        ({"with_stack": 1}, {}, "with_stack=False, profile_memory=False"),
        ({"record_shapes": 1}, {}, "profile(..., profile_memory=False, record_shapes=False)"),
        ({}, {}, ""),
        (
            {"with_stack": 1, "record_shapes": 1},
            {"capture_reason": "warm-up is over"},
            "",
        ),
    ],
    ids=["stacks", "shapes", "nothing more", "recorded by the monitor"],
)
def test_only_recorded_options_are_to_be_turned_off(tmp_path, options, reason, fix):
    """The advice for recordings without stacks, and for those of the monitor, was to turn stacks off."""
    context = {"unprofiled_step_ns": 7_000} | reason
    path = tmp_path / "r.pt.trace.json"
    path.write_text(json.dumps(drawn(LONGER_WAITING, 1, tb_bottleneck={"context": context}, **options)))
    (defect,) = (reason for reason in diagnose(str(path)).health.reasons if reason.code == "profiler_overhead")
    assert fix in defect.fix
    assert bool(defect.fix) == bool(fix)
    assert ("nothing to" in defect.detail) == (not fix)
    assert ("with_stack" in defect.fix) == (options.get("with_stack") == 1 and not reason)


@pytest.mark.parametrize("result", [None, 0, -7e3, 1e9, 1000, float("inf"), "long", True, [7e3], {"ns": 7e3}])
def test_what_is_no_step_time_of_these_steps_is_not_used(result):
    recording = slowed(unprofiled_step_ns=result)
    assert isinstance(profiler_overhead(recording), Missing)
    assert overhead_defect(recording) is None


@pytest.mark.parametrize("wrong", [1e-300, 1e300, 0, "x"])
def test_logged_times_are_not_used_if_one_of_them_is_no_step_time(wrong):
    logged = {"unprofiled_step_ns": 7_000, "unprofiled_step_times_ns": [7_000, wrong]}
    assert logged_unprofiled(slowed(**logged)).times == ()
    assert logged_unprofiled(slowed(**(logged | {"unprofiled_step_times_ns": [7_000, 8_000]}))).times == (
        7e3,
        8e3,
    )


def test_a_few_recorded_rows_cannot_have_cost_much():
    """Steps of 10 ms with an operator and a call each: recording them costs 15 us at most, so two runs differ."""
    trace = drawn_trace(LAUNCH_BOUND, 1000, tb_bottleneck={"context": {"unprofiled_step_ns": 7_000_000}})
    recording = Recording(trace, find_steps(trace))
    assert profiler_overhead(recording).value == pytest.approx(0.00153)
    assert overhead_defect(recording) is None


def test_a_step_that_the_profiler_did_not_slow_is_no_defect():
    assert overhead_defect(slowed(unprofiled_step_ns=9_800)) is None
    assert profiler_overhead(slowed(unprofiled_step_ns=10_400)).value == 0


def test_the_measured_overhead_takes_the_place_of_the_half_that_is_reckoned_with():
    assert RULE.judge(Measures(slowed())).recoverable == pytest.approx(0.6 * RECOVERABLE_OF_LAUNCHES, abs=0.02)
    share = RULE.judge(Measures(slowed())).share
    hidden = RULE.judge(Measures(slowed(unprofiled_step_ns=4_100)))
    assert (hidden.status, hidden.causes) == ("clear", ())
    for result, recoverable in ((10_000, share), (7_000, (share - 0.3) / 0.7), (4_500, 0.1)):
        judged = RULE.judge(Measures(slowed(unprofiled_step_ns=result)))
        assert judged.recoverable == pytest.approx(recoverable, abs=0.04)


@pytest.mark.parametrize(
    ("unprofiled_ns", "is_typical"), [(900_000, False), (3_000_000, False), (7_000_000, True), (15_200_000, False)]
)
def test_recorded_steps_that_the_profiler_cannot_have_slowed_are_not_typical(tmp_path, unprofiled_ns, is_typical):
    """Steps of 10 ms with an operator and a call each: another process slowed them, or they did less work."""
    context = {"unprofiled_step_ns": unprofiled_ns}
    path = tmp_path / "r.pt.trace.json"
    path.write_text(json.dumps(drawn(LONGER, 1000, tb_bottleneck={"context": context})))
    report = diagnose(str(path))
    codes = [reason.code for reason in report.health.reasons]
    assert ("atypical_steps" in codes, report.verdict.confidence == "low") == (not is_typical, not is_typical)
    assert report.unprofiled.step_ns == unprofiled_ns
    assert bool(report.unprofiled.sentence) == is_typical, "the health says it otherwise"


def test_the_overhead_of_many_rows_is_no_other_kind_of_step():
    """Of steps of 10 us, each with an operator and a call, the profiler may have made any part."""
    assert atypical_ratio(slowed(unprofiled_step_ns=4_000)) is None


# Steps of 100 us in a run without a device; half of each lies between operators.
ON_THE_CPU = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##..##..#.##..##..#.##..##..#.
"""


def test_on_the_cpu_operators_contain_a_part_of_the_overhead():
    """Between none and all of the overhead is inside operators; the mean of both extremes counts."""
    trace = drawn_trace(ON_THE_CPU, 10, tb_bottleneck={"context": {"unprofiled_step_ns": 90_000}})
    judged = RULE.judge(Measures(Recording(trace, find_steps(trace))))
    assert (judged.status, judged.share) == ("fires", pytest.approx(0.5, abs=0.04))
    assert judged.recoverable == pytest.approx((judged.share + (judged.share - 0.1) / 0.9) / 2, rel=0.01)
    assert not any(cause.bounded for cause in judged.causes), "larger operators do their own work faster, too"


BUSY = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ##........##........
    launch  |.........|.........
    gpu     .aaaaaaaaa.bbbbbbbbb
"""


def logged(times: list[int]) -> LoggedSteps | None:
    context = {"unprofiled_step_ns": sorted(times)[len(times) // 2], "unprofiled_step_times_ns": times}
    return logged_unprofiled(drawn_recording(BUSY, 1000, tb_bottleneck={"context": context}))


def test_steps_of_a_host_that_is_ahead_of_the_device_are_left_out():
    """The device needs 10 ms for a step. While the queue of launches fills, the host's steps take 1 ms."""
    ms = 1_000_000
    found = logged([ms] * 17 + [5 * ms, 10 * ms, 10 * ms, 11 * ms])
    assert found is not None
    assert (found.step, found.steps) == (10 * ms, 3)
    assert logged([ms] * 17 + [5 * ms, 10 * ms, 10 * ms]) is None, "two steps are no measurement"
    few = logged([ms] * 6 + [10 * ms] * 14)
    assert few is not None
    assert (few.step, few.steps, few.uneven) == (10 * ms, 14, False)
    assert logged([10 * ms] * 5 + [ms] * 9) is None, "the host is ahead at the end"


def test_uneven_steps_are_compared_by_their_means():
    """Workers deliver in bursts: the median of a few steps is one of two very different times."""
    ms = 1_000_000
    found = logged([9 * ms, 50 * ms] * 8 + [9 * ms])
    assert found is not None
    assert found.uneven
    assert found.step == pytest.approx((9 * 9 + 50 * 8) / 17 * ms)
    assert found.average(np.array([10, 10, 70])) == 30
    even = logged([10 * ms] * 16 + [90 * ms])
    assert even is not None
    assert (even.uneven, even.step) == (False, 10 * ms)
