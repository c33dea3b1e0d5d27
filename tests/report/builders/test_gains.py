"""Tests of the gains that a report states, and of the severity and confidence that follow from them.

A single pause does not show how often it occurs in the run.
"""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.bottlenecks.plan import Prediction
from tb_bottleneck.bottlenecks.rule_types import FIRES, Cause, Judgement, Verdict
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.knowledge.measured import estimated_gain
from tb_bottleneck.replay.gain import Gain
from tb_bottleneck.replay.simulator import Check
from tb_bottleneck.report.builders.action import with_gain
from tb_bottleneck.report.builders.gains import simulated_speedup, stated_confidence, stated_gain, stated_severity
from tb_bottleneck.schema import bottleneck_pb2 as pb

# The host prepares something for 10 ms: in one step of five, and in every one of them.
ONCE = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccccccccccccddddddddddeeeeeeeeee
    op      ##############################..........####################
    gpu     .aaaaaaaa..bbbbbbbb..cccccccc..........ddddddddd.eeeeeeeee.f
"""
EACH = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbccccccccccccccccccccdddddddddddddddddddd
    op      ##########..........##########..........##########..........##########..........
    gpu     .aaaaaaaa............bbbbbbbb............cccccccc............dddddddd...........
"""


BUSY_CPU = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      aaaaabbbbbaaaaabbbbbaaaaabbbbbaaaaabbbbb
"""


def test_the_limit_of_a_cpu_is_known_from_names_only(tmp_path):
    path = tmp_path / "cpu.pt.trace.json"
    path.write_text(json.dumps(drawn(BUSY_CPU, 1000, deviceProperties=[])))
    report = diagnose(str(path))
    assert (report.verdict.severity, report.verdict.confidence) == ("none", "medium")


@pytest.mark.parametrize(("drawing", "sure"), [(ONCE, "low"), (EACH, "high")])
def test_a_single_pause_lowers_the_confidence(tmp_path, drawing, sure):
    whole, path = drawn(drawing, 1000), tmp_path / "paused.pt.trace.json"
    kernels = [event for event in whole["traceEvents"] if event["cat"] == "kernel"]
    whole["traceEvents"] += [kernel | {"dur": 5, "tid": 9} for kernel in kernels]
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    assert report.verdict.regime == "host"
    assert report.verdict.confidence == sure
    assert "of the recorded time" in report.verdict.headline


LEVELS = ("none", "info", "warning", "critical")
UNTRUSTED = Prediction(Check(error=0.5, frozen_share=0.0), {}, (), None)


def gain_of(*, share=0.4, recoverable=0.4, prediction=UNTRUSTED, on_cpu=False, **cause):
    given = {"name": "slow_loader", "cost_share": share, "evidence": (), **cause}
    verdict = Verdict(Regime.INPUT, Judgement(FIRES, share, recoverable, (Cause(**given),)))
    return stated_gain(verdict, verdict.judgement.causes[0], prediction, on_cpu=on_cpu)


def severity(concluded, *gains, plan=(), confidence="high", regime=Regime.INPUT, of=Regime.INPUT):
    findings = [pb.Finding(regime=of, speedup=gain) for gain in gains]
    rows = [pb.PlanStep(speedup_total=total) for total in plan]
    return stated_severity(Conclusion(regime, 0.5, concluded), confidence, findings, rows)


def gain(basis, expected, low=1.0, high=None):
    return pb.Speedup(basis=basis, expected=expected, low=low, high=high or expected)


def test_a_bound_removes_all_of_the_time_and_what_the_rule_counts_as_recoverable_is_expected():
    """Half of a share of 65 % is expected to be the profiler's: "at most 1.5 times" was no bound."""
    assert gain_of().high == pytest.approx(1 / 0.6)
    half = gain_of(recoverable=0.2)
    assert (half.expected, half.high) == (pytest.approx(1 / 0.8), pytest.approx(1 / 0.6))
    assert half.unless == "if 50 % of this time remains"
    assert with_gain("Compile", half).startswith(
        "Compile: 1.2\N{MULTIPLICATION SIGN} faster if 50 % of this time remains, at most"
    )
    assert gain_of(recoverable=0.0, certain=False).high == pytest.approx(1 / 0.6)


def test_the_bound_is_higher_if_the_rest_of_a_step_becomes_faster_too():
    found = gain_of(most=0.8)
    assert (found.basis, found.low) == ("bound", 1)
    assert found.expected == pytest.approx(1 / 0.6)
    assert found.high == pytest.approx(1 / 0.2)
    assert gain_of(most=0.1).high == pytest.approx(1 / 0.6), "never below its own cost"


def test_the_bound_ends_where_the_advice_ends():
    """Two workers that wait for storage nearly all of the time: eight of them make four times as many batches."""
    stated = gain_of(share=0.99, recoverable=0.99, cost_share=0.99, factor=4.0)
    assert (stated.expected, stated.high, stated.basis) == (4.0, 4.0, "bound")
    assert "advised number of workers" in stated.unless
    assert gain_of(share=0.5, recoverable=0.5, cost_share=0.5, factor=4.0).high == 2.0


@pytest.mark.parametrize(("on_cpu", "more"), [(False, ""), (True, "more if the fix also frees CPU cores")])
def test_a_bound_on_the_cpu_says_why_the_gain_can_be_larger(on_cpu, more):
    found = gain_of(on_cpu=on_cpu)
    assert (found.basis, found.unless) == ("bound", more)


@pytest.mark.parametrize("cause", [{"bounded": False}, {"recurs": False}, {"recurs": False, "bounded": False}])
def test_what_is_not_bounded_or_does_not_recur_has_no_gain(cause):
    assert gain_of(**cause).basis == "none"


def test_a_simulated_gain_goes_before_every_other():
    simulated = Prediction(Check(0.0, 0.0), {"slow_loader": Gain(1.3, 1.1, 1.5)}, (), None)
    assert gain_of(prediction=simulated).basis == "replay"
    assert gain_of(prediction=None).basis == "bound"


@pytest.mark.parametrize(("high", "because"), [(1.5, ""), (3.4, "The range is wide because the problem was recorded")])
def test_a_wide_interval_says_what_is_not_known(high, because):
    simulated = Prediction(Check(0.0, 0.0), {"slow_loader": Gain(1.3, 1.1, high, "sample")}, (), None)
    found = simulated_speedup("slow_loader", simulated).because
    assert found.startswith(because)
    assert bool(found) == bool(because)


def test_a_cause_with_measured_changes_has_an_estimate():
    found = gain_of(name="small_operators", bounded=False)
    assert (found.basis, found.low < found.expected < found.high) == ("estimate", True)
    assert "14 measured trainings" in found.assumes
    assert gain_of(name="small_operators", bounded=False, recurs=False).basis == "none"


@pytest.mark.parametrize("cause", ["small_operators", "oversubscribed_threads"])
def test_the_estimate_grows_with_the_share_and_is_none_without_measured_changes(cause):
    lows = [estimated_gain(cause, share).low for share in (0.1, 0.3, 0.6, 0.9)]
    assert lows == sorted(lows)
    assert estimated_gain(cause, 0.999).high <= 2 * 13.65, "of the highest measured gain"
    assert lows[0] > 1
    assert estimated_gain("unfused_pointwise", 0.5) is None
    assert estimated_gain(cause, 0.0) is None
    assert estimated_gain(cause, 1.0) is None


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        (gain("replay", 1.05, high=2.0), "info"),
        (gain("replay", 1.2), "warning"),
        (gain("replay", 1.4), "critical"),
        (gain("bound", 1.05), "info"),
        (gain("bound", 1.2), "warning"),
        (gain("bound", 1.4), "critical"),
        (gain("estimate", 1.05, 1.02, 1.9), "info"),
        (gain("estimate", 2.0, 1.1, 9.0), "warning"),
        (gain("estimate", 2.0, 1.3, 9.0), "critical"),
        (gain("none", 1.0), "info"),
    ],
)
def test_the_severity_is_lowered_to_the_gain_that_is_stated(stated, found):
    assert severity("critical", stated) == found
    for concluded in LEVELS:
        assert LEVELS.index(severity(concluded, stated)) <= LEVELS.index(concluded), "never raised"


@pytest.mark.parametrize("stated", [gain("bound", 1.9), gain("estimate", 2.0, 1.4, 9.0), gain("replay", 1.9)])
def test_nothing_of_low_confidence_is_critical(stated):
    assert severity("critical", stated, confidence="low") == "warning"
    assert severity("critical", stated, confidence="medium") == "critical"
    assert severity("info", stated, confidence="low") == "info"


def confidence(stated, given="high", plan=()):
    finding = pb.Finding(regime=Regime.INPUT, speedup=stated)
    rows = [pb.PlanStep(speedup_total=mid, low=low, high=high) for mid, low, high in plan]
    return stated_confidence(given, Regime.INPUT, [finding], rows)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(1.1, 1.9, "high"), (1.5, 8.5, "medium"), (1.2, 39, "low"), (1.0, 2.0, "medium"), (1.0, 4.0, "low")],
)
def test_a_wide_interval_lowers_the_confidence(low, high, found):
    assert confidence(gain("replay", 1.65, low, high)) == found
    assert confidence(gain("estimate", 1.65, low, high)) == found
    assert confidence(gain("replay", 1.65, low, high), given="low") == "low"
    assert confidence(gain("replay", 1.65, 1.6, 1.7), plan=[(1.65, low, high)]) == found, "the plan leads"


def test_a_bound_says_nothing_about_the_confidence():
    assert confidence(gain("bound", 9.0)) == "high"


def test_the_plan_counts_as_a_whole_and_bounds_of_other_regimes_do_not():
    assert severity("critical", gain("replay", 1.1), plan=(1.15, 1.6)) == "critical"
    assert severity("critical", gain("none", 1.0), plan=(1.15,)) == "warning"
    assert severity("critical", gain("bound", 1.9), of=Regime.HOST) == "info"
    assert severity("critical") == "info"


def test_a_device_without_any_work_stays_critical():
    assert severity("critical", gain("none", 1.0), regime=Regime.GPU_UNUSED) == "critical"
