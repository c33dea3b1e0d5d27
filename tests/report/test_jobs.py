"""Ranks of one job are judged together: the one that waits least determines the step time."""

import pytest

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.replay.validation import RUN_TO_RUN_NOISE
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.schema import bottleneck_pb2 as pb


def rank(number, communication, regime="compute", world_size=4, run="ddp"):
    report = pb.Report(run=run, rank=number, world_size=world_size)
    for name in REGIMES:
        share = communication if name == "communication" else 1 - communication if name == regime else 0.0
        report.account.add(regime=name, share=share, ns_per_step=share * 1e8)
    report.verdict.MergeFrom(pb.Verdict(regime=regime, headline=f"{regime} on {number}."))
    return report


def test_the_rank_that_waits_least_is_the_straggler_and_its_verdict_the_jobs():
    (job,) = jobs_of([rank(0, 0.4), rank(1, 0.42), rank(2, 0.05, "input"), rank(3, 0.38)])
    assert job.ranks == [0, 1, 2, 3]
    assert [found.rank for found in job.stragglers] == [2]
    assert job.stragglers[0].behind_share == pytest.approx(0.34)
    assert job.verdict.regime == "input"
    assert job.verdict.headline == (
        "The other ranks wait for rank 2, which waits 34 % less of each step than the median rank. "
        "On that rank: input on 2."
    )
    assert sum(row.share for row in job.account) == pytest.approx(1)


def test_without_the_straggler_the_next_slowest_rank_sets_the_pace():
    """Rank 2 works 95 % of the step, rank 3 62 %; with the 5 % that the transfer takes now, a step takes 67 %."""
    (job,) = jobs_of([rank(0, 0.4), rank(1, 0.42), rank(2, 0.05, "input"), rank(3, 0.38)])
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
    (job,) = jobs_of([rank(0, 0.5, world_size=2), rank(1, 0.1, "input", world_size=2)])
    assert job.speedup.expected == pytest.approx(1 / 0.8)


def test_no_gain_is_given_if_recordings_of_ranks_are_missing():
    (job,) = jobs_of([rank(0, 0.4), rank(1, 0.42), rank(2, 0.05, "input")])
    assert job.speedup.basis == "none"
    assert "missing" in job.speedup.because


def test_ranks_that_wait_equally_have_no_straggler():
    (job,) = jobs_of([rank(0, 0.3, "communication"), rank(1, 0.31, "communication")])
    assert not job.stragglers
    assert not job.HasField("speedup")
    assert job.verdict.regime == "communication"
    assert "spends 30 % there: at most this is transfer time" in job.verdict.headline


def test_one_rank_alone_or_runs_apart_are_no_job():
    assert jobs_of([rank(0, 0.3)]) == []
    assert jobs_of([rank(0, 0.3, run="a"), rank(1, 0.3, run="b")]) == []
    assert jobs_of([rank(0, 0.3, world_size=1), rank(1, 0.3, world_size=1)]) == []
