"""Tests of which reports are about one job: those that nothing known of them contradicts.

Ranks of one job are judged together: the one that waits least determines the step time.
"""

import json
import os
from pathlib import Path

import pytest
from helpers.reports import report_of

from tb_bottleneck.base.deviations import RUN_TO_RUN_NOISE
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.report.jobs import MAX_CLOCK_DIFFERENCE_NS, jobs_in, jobs_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

SECOND = 10**9


def rank(number, world_size=4, run=".", begin=0, steps=(5, 10), group="a", known=True):
    report = pb.Report(run=run, rank=number, world_size=world_size, evidence_source="trace")
    report.verdict.MergeFrom(pb.Verdict(regime="compute"))
    if known:
        membership = pb.Membership(begin_ns=begin, end_ns=begin + 2 * SECOND, default_group=group)
        if steps:
            membership.first_step, membership.last_step = steps
        report.membership.CopyFrom(membership)
    return report


def test_ranks_that_agree_are_one_job_in_order_of_rank():
    assert jobs_in([rank(3), rank(0), rank(1)]) == [[1, 2, 0]]


@pytest.mark.parametrize(
    "other",
    [
        rank(1, world_size=8),
        rank(1, run="another"),
        rank(1, begin=2 * SECOND + MAX_CLOCK_DIFFERENCE_NS + 1),
        rank(1, steps=(11, 16)),
        rank(1, group="b"),
        rank(0),
        rank(4),
    ],
    ids=["world size", "run", "time", "steps", "process group", "same rank", "no such rank"],
)
def test_ranks_that_differ_are_no_job(other):
    assert jobs_in([rank(0), other]) == []


@pytest.mark.parametrize("other", [rank(1, steps=None), rank(1, group=""), rank(1, known=False)])
def test_what_is_not_known_does_not_separate(other):
    assert jobs_in([rank(0), other]) == [[0, 1]]


def test_two_recordings_of_the_same_ranks_are_two_jobs():
    later = 60 * SECOND
    reports = [rank(0), rank(0, begin=later), rank(1, begin=later), rank(1)]
    assert jobs_in(reports) == [[0, 3], [1, 2]]


def test_of_the_public_traces_only_the_two_ranks_of_one_training_are_a_job():
    folder = os.environ.get("TB_BOTTLENECK_TRACES")
    if not folder:
        pytest.skip("TB_BOTTLENECK_TRACES names no folder")
    names = sorted(entry["name"] for entry in json.loads((Path(folder) / "labels.json").read_text()))
    several = [name for name in names if "dlrm128" in name or "ws2" in name or "ws8" in name]
    assert len(several) == 4, "world sizes 2, 8 and 128"
    reports = [report_of(Path(folder) / f"{name}.json.gz") for name in several]
    (job,) = jobs_of(reports)
    assert job.ranks == [0, 1]
    (members,) = jobs_in(reports)
    assert [several[position] for position in members] == ["hta_dlrm128_sampled__rank0", "hta_dlrm128_sampled__rank1"]


def rank_report(number, communication, regime="compute", world_size=4, run="ddp"):
    report = pb.Report(run=run, rank=number, world_size=world_size)
    for name in REGIMES:
        share = communication if name == "communication" else 1 - communication if name == regime else 0.0
        report.account.add(regime=name, share=share, ns_per_step=share * 1e8)
    report.verdict.MergeFrom(pb.Verdict(regime=regime, headline=f"{regime} on {number}."))
    return report


def test_the_rank_that_waits_least_is_the_straggler_and_its_verdict_the_jobs():
    (job,) = jobs_of([rank_report(0, 0.4), rank_report(1, 0.42), rank_report(2, 0.05, "input"), rank_report(3, 0.38)])
    assert job.ranks == [0, 1, 2, 3]
    assert [found.rank for found in job.stragglers] == [2]
    assert job.stragglers[0].behind_share == pytest.approx(0.35)
    assert job.verdict.regime == "input"
    assert job.verdict.headline == (
        "The other ranks wait for rank 2, which waits 35 % less of each step than the median rank. "
        "On that rank: input on 2."
    )
    assert sum(row.share for row in job.account) == pytest.approx(1)


def test_without_the_straggler_the_next_slowest_rank_sets_the_pace():
    """Rank 2 works 95 % of the step, rank 3 62 %; with the 5 % that the transfer takes now, a step takes 67 %."""
    (job,) = jobs_of([rank_report(0, 0.4), rank_report(1, 0.42), rank_report(2, 0.05, "input"), rank_report(3, 0.38)])
    assert job.speedup.basis == "ranks"
    assert job.speedup.expected == pytest.approx(1 / 0.67)
    assert job.speedup.low == pytest.approx(1 / (1 - (0.3125 - 0.05)) / (1 + RUN_TO_RUN_NOISE)), (
        "all work like the mean"
    )
    assert job.speedup.high == pytest.approx(1 / (1 - (0.39 - 0.05)) * (1 + RUN_TO_RUN_NOISE)), (
        "all work like the median"
    )
    assert "collectives" in job.speedup.assumes


def test_of_two_ranks_the_slow_one_comes_half_of_the_way():
    (job,) = jobs_of([rank_report(0, 0.5, world_size=2), rank_report(1, 0.1, "input", world_size=2)])
    assert job.speedup.expected == pytest.approx(1 / 0.8)


def test_no_gain_is_given_if_recordings_of_ranks_are_missing():
    (job,) = jobs_of([rank_report(0, 0.4), rank_report(1, 0.42), rank_report(2, 0.05, "input")])
    assert job.speedup.basis == "none"
    assert "missing" in job.speedup.because


def test_ranks_that_wait_equally_have_no_straggler():
    (job,) = jobs_of([rank_report(0, 0.3, "communication"), rank_report(1, 0.31, "communication")])
    assert not job.stragglers
    assert not job.HasField("speedup")
    assert job.verdict.regime == "communication"
    assert "spends 30 % there: at most this is transfer time" in job.verdict.headline


def test_one_rank_alone_or_runs_apart_are_no_job():
    assert jobs_of([rank_report(0, 0.3)]) == []
    assert jobs_of([rank_report(0, 0.3, run="a"), rank_report(1, 0.3, run="b")]) == []
    assert jobs_of([rank_report(0, 0.3, world_size=1), rank_report(1, 0.3, world_size=1)]) == []
