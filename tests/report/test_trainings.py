"""Recordings of one training are one entry; unrelated ones are never put together."""

import json
import os
from pathlib import Path

import pytest
from helpers.reports import report_of

from tb_bottleneck.report.cross_check import join
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.same_process import launches_of
from tb_bottleneck.report.trainings import judged_jobs, trainings_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

SECOND = 10**9
MONITOR = "/logs/a/tb_bottleneck/20261121-110503"


def report(source="trace", verdict="input", severity="critical", rank=None, begin=0, world_size=4):
    """Returns a report; without a verdict it is incomplete."""
    made = pb.Report(run="a", evidence_source=source, health=pb.Health(status="ok" if verdict else "incomplete"))
    if verdict:
        made.verdict.MergeFrom(pb.Verdict(regime=verdict, severity=severity, confidence="high", share=0.4))
    if rank is not None:
        made.rank, made.world_size = rank, world_size
        made.account.add(regime="communication", share=0.6 if rank else 0.1)
        made.membership.MergeFrom(pb.Membership(begin_ns=begin, end_ns=begin + SECOND))
    return made


WAITING = pb.Report(run="a", evidence_source="trace")
UNKNOWN = {"source": "telemetry", "verdict": "unexplained", "severity": "none"}


def members(located):
    """Returns the members of each training, the one that counts first, after the reports were joined."""
    joined = [(directory, one) for (directory, _), one in zip(located, join(located), strict=True)]
    return [training.members for training in trainings_of(joined)]


def test_a_trace_and_the_telemetry_of_one_process_are_one_and_the_trusted_one_comes_first():
    own = [("/logs/a", report()), (f"{MONITOR}_rank0_1", report(**UNKNOWN))]
    assert members(own) == [(0, 1)]
    stored = report("telemetry")
    stored.findings.add(cause="slow_storage", regime="input")
    assert members([("/logs/a", report()), (f"{MONITOR}_rank0_1", stored)]) == [(1, 0)]


def test_everything_in_a_directory_of_the_monitor_is_one_and_the_last_trace_counts():
    directory = f"{MONITOR}_rank0_1"
    located = [(directory, one) for one in (report(**UNKNOWN), report(), report(), report("snapshot", verdict=""))]
    assert members(located) == [(2, 0, 1, 3)]


def test_two_processes_are_two_trainings():
    assert members([(f"{MONITOR}_rank0_{process}", report("telemetry")) for process in (1, 2)]) == [(0,), (1,)]


def test_two_traces_beside_one_telemetry_are_not_guessed_about():
    located = [("/logs/a", report()), ("/logs/a", report()), (f"{MONITOR}_rank0_1", report("telemetry"))]
    assert members(located) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("other", "expected"),
    [(report(verdict=""), [(0, 2), (1,)]), (WAITING, [(0,), (1,), (2,)])],
    ids=["without a verdict", "not analysed yet"],
)
def test_a_trace_without_a_verdict_counts_only_while_it_may_get_one(other, expected):
    assert members([("/logs/a", report()), ("/logs/a", other), (f"{MONITOR}_rank0_1", report(**UNKNOWN))]) == expected


def test_recordings_are_one_training_before_they_are_analysed():
    waiting = pb.Report(run="a", evidence_source="telemetry")
    assert members([("/logs/a", WAITING), (f"{MONITOR}_rank0_1", waiting)]) == [(0, 1)]
    assert members([("/logs/a", report(verdict="")), (f"{MONITOR}_rank0_1", report("telemetry"))]) == [(1, 0)]


def test_the_ranks_of_a_job_are_one_training_and_only_a_judged_job_has_another_first_rank():
    located = [("/logs/a", report(rank=rank)) for rank in (3, 0, 1, 2)]
    (training,) = trainings_of(located)
    assert training.members == (1, 0, 2, 3)
    assert training.ranks == (1, 2, 3, 0)
    (judged,) = trainings_of(located, {training.ranks: 0})
    assert (judged.members, judged.ranks) == ((0, 1, 2, 3), training.ranks)


def test_ranks_of_a_judged_job_need_no_membership_and_others_still_make_a_job():
    ranks = [("/logs/a", pb.Report(run="a", evidence_source="trace")) for _ in range(3)]
    others = [("/logs/a", report(rank=rank, world_size=2)) for rank in range(2)]
    found = trainings_of(ranks + others, {(0, 1, 2): 2})
    assert [(training.members, training.ranks) for training in found] == [((2, 0, 1), (0, 1, 2)), ((3, 4), (3, 4))]


def test_the_telemetry_of_all_ranks_belongs_to_their_job():
    ranks = [(f"{MONITOR}_abcdef_rank0_1", report(rank=rank)) for rank in range(4)]
    series = [(f"{MONITOR}_abcdef_rank{rank}_{rank + 1}", report("telemetry", rank=rank)) for rank in range(4)]
    (training,) = trainings_of(ranks + series)
    assert len(training.members) == 8
    assert training.ranks == (0, 1, 2, 3)


def test_a_job_that_is_started_again_with_the_same_id_is_another_training():
    names = [f"/l/tb_bottleneck/2026112{day}-110503_abcdef_rank{rank}_7" for day in (1, 2) for rank in (0, 1)]
    launches = launches_of(names)
    assert launches[names[0]] == launches[names[1]] != launches[names[2]] == launches[names[3]]
    assert members([(name, report("telemetry")) for name in names]) == [(0, 1), (2, 3)]


def test_ranks_of_two_jobs_in_one_directory_are_two_trainings():
    located = [("/logs/a", report(rank=rank, begin=begin)) for begin in (0, 60 * SECOND) for rank in (0, 1)]
    assert members(located) == [(0, 1), (2, 3)]


def test_of_the_public_traces_only_the_two_ranks_of_one_training_are_put_together():
    folder = os.environ.get("TB_BOTTLENECK_TRACES")
    if not folder:
        pytest.skip("TB_BOTTLENECK_TRACES names no folder")
    names = sorted(entry["name"] for entry in json.loads((Path(folder) / "labels.json").read_text()))
    located = [(folder, Digest.of(report_of(Path(folder) / f"{name}.json.gz")).brief) for name in names]
    several = [training.members for training in trainings_of(located) if len(training.members) > 1]
    together = [sorted(names[member] for member in group) for group in several]
    assert together == [["hta_dlrm128_sampled__rank0", "hta_dlrm128_sampled__rank1"]]


@pytest.mark.parametrize(("named", "position"), [([3], 1), ([], 2)])
def test_the_rank_that_a_job_names_explains_it_else_the_lowest(named: list[int], position: int) -> None:
    reports = [pb.Report(rank=5), pb.Report(rank=3), pb.Report(rank=2)]
    job = pb.Job(stragglers=[pb.Straggler(rank=rank) for rank in named])
    assert judged_jobs({(2, 1, 0): job}, reports) == {(2, 1, 0): position}
