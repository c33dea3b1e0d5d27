"""Reports are about one job if nothing that is known of them contradicts it."""

import json
import os
from pathlib import Path

import pytest

from tb_bottleneck.diagnosis.trace import diagnose
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
    reports = [diagnose(str(Path(folder) / f"{name}.json.gz")) for name in several]
    (job,) = jobs_of(reports)
    assert job.ranks == [0, 1]
    (members,) = jobs_in(reports)
    assert [several[position] for position in members] == ["hta_dlrm128_sampled__rank0", "hta_dlrm128_sampled__rank1"]
