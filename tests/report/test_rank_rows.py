"""Ranks of one job with equal accounts get equal predictions: the median over their replays."""

import pytest

from tb_bottleneck.report.equal_ranks import MAX_COMPARED, with_equal_predictions
from tb_bottleneck.schema import bottleneck_pb2 as pb


def rank(number, gain, communication=0.9, run="moe", basis="replay", cause="exposed_all_to_all"):
    report = pb.Report(run=run, rank=number, world_size=64)
    report.account.add(regime="communication", share=communication)
    report.account.add(regime="compute", share=1 - communication)
    report.verdict.MergeFrom(pb.Verdict(regime="communication"))
    speedup = pb.Speedup(expected=gain, low=gain / 1.1, high=gain * 1.1, basis=basis, assumes="the link limits them")
    report.findings.add(cause=cause, speedup=speedup)
    report.plan.add(cause=cause, speedup_total=gain, low=gain / 1.1, high=gain * 1.1)
    return report


def gains(reports):
    return [report.findings[0].speedup.expected for report in reports]


def test_one_replay_that_differs_does_not_count():
    reports = [rank(0, 1.81), rank(1, 1.01), rank(2, 1.82), rank(3, 1.80)]
    results = with_equal_predictions(reports)
    assert gains(results) == [pytest.approx(1.805)] * 4
    assert [result.plan[-1].speedup_total for result in results] == [1.80] * 4
    assert all("the median of what their replays show" in result.findings[0].speedup.assumes for result in results)
    assert gains(reports) == [1.81, 1.01, 1.82, 1.80], "the reports themselves stay"


@pytest.mark.parametrize(
    "other",
    [
        rank(1, 1.01, communication=0.5),
        rank(1, 1.01, run="another run"),
        rank(1, 1.01, basis="bound"),
        rank(0, 1.01),
        rank(1, 1.01, cause="host_python"),
    ],
    ids=["another account", "another job", "not simulated", "the same rank", "another cause"],
)
def test_other_reports_change_nothing(other):
    assert gains(with_equal_predictions([rank(0, 1.81), other])) == [1.81, 1.01]


def test_a_rank_with_a_replay_that_failed_keeps_its_report():
    untrusted = rank(1, 1.0, basis="none")
    untrusted.replay.because = "the replay differs"
    results = with_equal_predictions([rank(0, 1.8), untrusted, rank(2, 1.6)])
    assert gains(results) == [pytest.approx(1.7), 1.0, pytest.approx(1.7)]


def test_a_plan_names_only_causes_of_its_own_report():
    other = rank(1, 1.9)
    other.plan.add(cause="host_python", speedup_total=2.5)
    results = with_equal_predictions([rank(0, 1.8), other])
    assert [step.cause for step in results[0].plan] == ["exposed_all_to_all"]


def test_of_many_ranks_the_lowest_are_compared():
    reports = [rank(number, 1.5 if number < MAX_COMPARED else 3.0) for number in range(MAX_COMPARED * 3)]
    assert gains(with_equal_predictions(reports)) == [1.5] * len(reports)
