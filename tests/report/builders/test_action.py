"""The first line of a report: what to change first, and its gain."""

import pytest

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.texts import regime_advice
from tb_bottleneck.report.builders.action import action_of, action_sentence, led_by_action
from tb_bottleneck.report.equal_ranks import with_equal_predictions
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.schema import bottleneck_pb2 as pb


def said(recording):
    return action_sentence(recording).replace("\N{MULTIPLICATION SIGN}", "x")


def report(severity="critical", *, plan=(), findings=(), **fields):
    verdict = pb.Verdict(regime="input", severity=severity, share=0.4)
    return pb.Report(verdict=verdict, plan=plan, findings=findings, **fields)


def step(title="Let worker processes create the batches", total=1.72, low=1.5, high=1.8):
    return pb.PlanStep(cause="too_few_workers", title=title, speedup_total=total, low=low, high=high)


def finding(action="Use more workers", regime="input", **gain):
    return pb.Finding(cause="too_few_workers", regime=regime, speedup=pb.Speedup(**gain), fix=pb.Fix(action=action))


def test_the_first_fix_of_the_plan_leads_with_its_own_gain():
    assert (
        said(report(plan=[step(), step("Pin memory", 2.5, 2.0, 3.0)]))
        == "Let worker processes create the batches: about 1.7x faster (1.5 to 1.8)"
    )


def test_the_first_finding_is_about_the_action():
    other = pb.Finding(cause="small_kernels", regime="launch")
    recording = report(plan=[step()], findings=[other, finding(expected=1.7, low=1.5, high=1.8, basis="replay")])
    recording = led_by_action(recording)
    assert [each.cause for each in recording.findings] == ["too_few_workers", "small_kernels"]
    assert recording.verdict.action.startswith(recording.plan[0].title)
    assert not recording.verdict.HasField("action_cause"), "the verdict is about the same regime"


def test_an_action_in_another_regime_than_the_headline_has_its_own_cause():
    loader = finding(expected=1.7, low=1.5, high=1.8, basis="replay", regime="launch")
    loader.title, loader.cost_share = "The loader's workers are too slow", 0.3
    recording = report(plan=[step()], findings=[loader])
    recording = led_by_action(recording)
    assert recording.verdict.action_cause == "The loader's workers are too slow: 30 % of the time."


@pytest.mark.parametrize(
    ("total", "low", "high", "text"),
    [(1.08, 1.06, 1.12, "about 1.08x faster (1.06 to 1.12)"), (26.1, 12.8, 29.7, "about 26x faster (13 to 30)")],
)
def test_digits_follow_the_interval(total, low, high, text):
    assert said(report(plan=[step("Fix it", total, low, high)])) == f"Fix it: {text}"


def test_a_wide_interval_has_no_middle():
    wide = said(report(plan=[step("Fix it", 5.4, 1.6, 6.0)]))
    assert wide == "Fix it: 1.6 to 6.0x faster (measure it)"
    estimate = said(report(findings=[finding(expected=3.7, low=1.3, high=27.0, basis="estimate")]))
    assert estimate == "Use more workers: 1.3x faster or more (measure it)"


def test_a_bound_is_an_upper_limit():
    assert (
        said(report(findings=[finding(expected=1.4, low=1, high=1.4, basis="bound")]))
        == "Use more workers: at most 1.4x faster"
    )


@pytest.mark.parametrize(
    "nothing",
    [
        report("none", plan=[step()]),
        report(findings=[finding(expected=1, low=1, high=1, basis="none")]),
        report(findings=[finding(action="", expected=1.4, high=1.4, basis="bound")]),
        report(findings=[finding(regime="sync", expected=1.4, high=1.4, basis="bound")]),
    ],
)
def test_without_a_change_that_is_worth_it_nothing_is_said(nothing):
    assert action_sentence(nothing) == ""


def test_ranks_with_one_plan_have_one_action():
    """The plan of equal ranks is that of the median rank: the sentence follows it."""
    ranks = []
    for rank, total in enumerate((1.5, 1.6, 1.9)):
        one = report(plan=[step(total=total)], findings=[finding(basis="replay", expected=total)])
        one.account.extend(pb.AccountRow(regime=regime, share=1 / len(REGIMES)) for regime in REGIMES)
        one.rank, one.world_size, one.run = rank, 3, "job"
        one.verdict.action = action_sentence(one)
        ranks.append(one)
    joined = with_equal_predictions(ranks)
    assert {said(each).partition(": ")[2] for each in joined} == {"about 1.6x faster (1.5 to 1.8)"}
    assert {each.verdict.action for each in joined} == {action_sentence(joined[1])}
    assert jobs_of(joined)[0].verdict.action == "", "the gain of one rank is not that of the job"


def test_only_causes_that_ask_for_another_recording_have_no_action():
    causes = {name: advice for regime in REGIMES for name, advice in regime_advice(regime).causes.items()}
    without = {name for name, advice in causes.items() if not action_of(name, advice)}
    assert without == {"first_batch", "few_fetches", "start_up", "uneven_steps"}
    assert all(action_of(name, causes[name]) for name in scenarios() if name in causes)
