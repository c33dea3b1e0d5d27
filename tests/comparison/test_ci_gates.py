"""Budgets: what they are spelt as, when they are not kept, and that a gate that cannot see does not open."""

import pytest
from comparison.drawn_runs import judged, read, repeated

from tb_bottleneck.comparison.ci_gates import Budget, budget_of, budget_violations, share_of, slowdown_violation
from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.schema import bottleneck_pb2

SLOW = repeated(9, loader="####....", gpu="....####")
FAST = repeated(9, loader="##....", gpu="..####")


@pytest.mark.parametrize(("text", "share"), [("0.05", 0.05), ("5%", 0.05), (" 12.5 % ", 0.125), ("0", 0.0), ("1", 1.0)])
def test_a_share_may_be_spelt_two_ways(text, share):
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "five", "-1", "5", "nan", "1e-2", "101%"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(ValueError, match=r"write 0\.05 or 5%"):
        share_of(text)


def test_a_budget_names_a_regime():
    assert budget_of("input=10%") == Budget("input", 0.1)
    with pytest.raises(ValueError, match="is not a regime; the regimes are: input"):
        budget_of("loader=10%")
    with pytest.raises(ValueError, match=r"Write input=10%"):
        budget_of("input")


def test_a_budget_that_is_not_kept_is_a_sentence(tmp_path):
    report = judged(tmp_path, SLOW).report
    assert budget_violations([report], [Budget("input", 0.6), Budget("sync", 0.1)]) == []
    (said,) = budget_violations([report], [Budget("input", 0.1)])
    assert "input owns 50 % of the time, more than 10 %" in said


def test_what_gives_no_verdict_keeps_no_budget():
    report = bottleneck_pb2.Report(run=".", source="x.json")
    report.health.status = "incomplete"
    assert budget_violations([report], [Budget("input", 0.1)]) == [
        "x.json: no budget can be checked because the recording is incomplete"
    ]
    assert budget_violations([], [Budget("input", 0.1)]) == ["no budget can be checked: no recording was found"]
    assert budget_violations([report], []) == []


def test_slower_by_more_than_the_share_and_the_noise(tmp_path):
    result = compare_runs(judged(tmp_path, FAST), judged(tmp_path, SLOW))
    assert "B is 33 % slower than A, more than 5.0 %" in (slowdown_violation(result, 0.05) or "")
    assert slowdown_violation(result, 0.5) is None
    assert slowdown_violation(compare_runs(judged(tmp_path, SLOW), judged(tmp_path, FAST)), 0.05) is None


def test_slower_by_long_steps_that_recur(tmp_path):
    """Every third step waits for data: the typical step is as long as before, and the run is not."""
    waits = [number % 3 == 1 for number in range(18)]
    step = "".join(chr(ord("a") + number) * (16 if wait else 4) for number, wait in enumerate(waits))
    loader = "".join("############...." if wait else "...." for wait in waits)
    gpu = "".join(".............###" if wait else ".###" for wait in waits)
    starved = judged(tmp_path, f"step {step}\nloader {loader}\ngpu {gpu}")
    fed = judged(tmp_path, repeated(18, gpu=".###"))
    assert "on average over all steps" in (slowdown_violation(compare_runs(fed, starved), 0.05) or "")
    assert slowdown_violation(compare_runs(starved, fed), 0.05) is None


def test_the_profiler_s_own_time_is_no_slowdown(tmp_path):
    """B's recorded steps are longer, because more was recorded; without the profiler both take as long."""
    logged = [{"context": {"unprofiled_step_ns": ns}} for ns in (6e6, 6.1e6, 9e6)]
    fast, slowed, slower = (
        judged(tmp_path, drawing, unit_us=1000, tb_bottleneck=context)
        for drawing, context in zip((FAST, SLOW, SLOW), logged, strict=True)
    )
    assert compare_runs(fast, slowed).difference == "slower"
    assert slowdown_violation(compare_runs(fast, slowed), 0.05) is None
    said = slowdown_violation(compare_runs(fast, slower), 0.05) or ""
    assert "B is 50 % slower than A without the profiler, more than 5.0 %: 9.00 ms instead of 6.00 ms per step" in said


def test_one_step_does_not_pass_as_no_slower(tmp_path):
    """The whole of a recording is one step of it: that it takes twice as long may be noise, and may not."""
    drawings = ("op " + "##.." * 10 + "\nlaunch " + ".|.." * 10 + "\ngpu " + "..##" * 10, "op " + "####...." * 10)
    one, other = drawings[0], drawings[1] + "\nlaunch " + ".|......" * 10 + "\ngpu " + "....####" * 10
    result = compare_runs(judged(tmp_path, one), judged(tmp_path, other))
    assert "cannot determine" in (slowdown_violation(result, 0.05) or "")
    assert slowdown_violation(compare_runs(judged(tmp_path, other), judged(tmp_path, one)), 0.05) is None


def test_what_cannot_be_compared_does_not_pass(tmp_path):
    result = compare_runs(judged(tmp_path, FAST), read(tmp_path, "step a\nop #"))
    assert "No comparison" in (slowdown_violation(result, 0.05) or "")


def test_runs_that_do_different_work_do_not_pass(tmp_path):
    result = compare_runs(judged(tmp_path, SLOW), judged(tmp_path, FAST))
    assert slowdown_violation(result, 0.05) is None
    result.similarity.same_work = False
    assert slowdown_violation(result, 0.05) == result.headline
