"""Missing ranks of a job behave like their peers, if the job is then replayed as recorded."""

import pytest
from helpers.simulated_jobs import context_of, planted, simulated
from simulate.jobs.as_summaries import summaries_of
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.context import MAX_REPLAY_ERROR
from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.jobs.report.health import is_trusted, late_ranks, reasons_of
from tb_bottleneck.jobs.report.wording import health_message

PIPELINE = {"topology": "pipeline", "ranks": 16, "faults": Faults(host={9: 0.5})}
"""Stages of four ranks: rank 9 is in the pipeline of ranks 1, 5 and 13."""
MEGATRON = {"topology": "megatron", "ranks": 32, "steps": 4, "faults": Faults(host={21: 0.5})}
"""Rank 21 shares its layers with ranks 20 to 23, and is in the pipeline of ranks 5, 13 and 29."""


def context_without(missing, **job):
    return context_of([summary for summary in simulated(**job) if summary.facts.rank not in missing])


@pytest.mark.parametrize(
    ("job", "missing"),
    [(PIPELINE, ranks) for ranks in ((1,), (5,), (13,), (1, 13), (8,))]
    + [pytest.param(MEGATRON, ranks, marks=pytest.mark.nightly) for ranks in ((5,), (20, 22), (0, 1, 2, 3))],
)
def test_a_slow_rank_is_found_with_its_gain_although_others_are_missing(job, missing):
    slow = 9 if job is PIPELINE else 21
    (expected,) = culprits_of(context_without((), **job)).culprits
    context = context_without(missing, **job)
    (culprit,) = culprits_of(context).culprits
    assert culprit.candidate.cause == "slow_rank"
    assert [context.job.ranks[position] for position in culprit.candidate.ranks] == [slow]
    assert culprit.gain.expected == pytest.approx(expected.gain.expected, rel=0.02)
    assert context.error < 0.01


def test_a_missing_rank_that_is_unlike_its_peers_is_not_replaced():
    """Rank 9 itself is missing. With a peer in its place, the job would be a third faster than recorded."""
    context = context_without((9,), **PIPELINE)
    assert len(context.complete.rank) == len(context.job.ranks)
    assert not culprits_of(context).culprits


def test_a_job_that_is_complete_or_waits_for_no_missing_rank_is_replayed_as_recorded():
    for missing in (), (3,):
        context = context_without(missing, topology="data", faults=Faults(host={5: 0.5}))
        assert context.complete.graph is context.graph
        (culprit,) = culprits_of(context).culprits
        assert culprit.candidate.cause == "slow_rank"


def test_a_missing_slow_rank_is_no_slow_link():
    """The others of its group wait for it, so that their transfers look long."""
    context = context_without((5,), topology="tensor", faults=Faults(host={5: 0.5}))
    assert "slow_link" not in {culprit.candidate.cause for culprit in culprits_of(context).culprits}


PART_CAUSES = ("unsynchronised_gc", "data_imbalance", "stage_imbalance")
PARTS = [(cause, 2, seed) for seed in (3, 4, 6) for cause in PART_CAUSES] + [
    ("stage_imbalance", 4, 3),
    ("stage_imbalance", 4, 4),
]


@pytest.mark.parametrize(
    ("cause", "every", "seed"), [*PARTS[:3], *(pytest.param(*part, marks=pytest.mark.nightly) for part in PARTS[3:])]
)
def test_a_part_of_the_ranks_shows_a_cause_of_all(cause, every, seed):
    """The gain is that of the job with all ranks, since the fix is one of all."""
    _, summaries = planted(cause, seed)
    whole = {each.candidate.cause: each.gain for each in culprits_of(context_of(summaries)).culprits}
    context = context_of([summary for summary in summaries if summary.facts.rank % every == 0])
    assert is_trusted(context)
    found = {each.candidate.cause: each.gain for each in culprits_of(context).culprits}
    assert found[cause].expected == pytest.approx(whole[cause].expected, rel=0.1)


ONE_IN_FOUR = {
    "unsynchronised_gc": 4_000_008,  # ranks of a layer wait for others that collect and were not recorded
    "exposed_messages": 4_000_003,  # the other ends of all messages were not recorded
    "pipeline_bubble": 5_000_010,  # the last of four stages was not recorded
    "expert_imbalance": 5_000_012,  # one of two recorded ranks has most tokens, of eight ranks
}


@pytest.mark.parametrize("cause", ONE_IN_FOUR)
def test_one_in_four_ranks_shows_the_cause_and_no_other(cause):
    _, summaries = planted(cause, ONE_IN_FOUR[cause])
    whole = {each.candidate.cause: each.gain for each in culprits_of(context_of(summaries)).culprits}
    context = context_of([summary for summary in summaries if summary.facts.rank % 4 == 0])
    found = {each.candidate.cause: each.gain for each in culprits_of(context).culprits}
    assert found.keys() == {cause}
    assert found[cause].expected == pytest.approx(whole[cause].expected, rel=0.1)


LATE = {"topology": "sharded", "ranks": 16, "faults": Faults(pauses={(3, 4): 1.5, (3, 6): 1.5, (9, 5): 0.5})}
"""Ranks 3 and 9 pause, which are not recorded."""


@pytest.fixture(scope="module")
def late():
    return context_without(range(1, 16, 2), **LATE)


def test_the_replay_waits_for_ranks_that_were_not_recorded(late):
    assert is_trusted(late)
    assert not culprits_of(late).culprits, "none of the recorded ranks is late"


def test_the_report_says_for_whom_the_recorded_ranks_wait(late):
    share, ranks = late_ranks(late)
    assert 0.1 < share < 0.6
    assert len(ranks) == 1, "one more recording would show it: all ranks are in one group"
    (reason,) = (reason for reason in health_message(list(reasons_of(late))).reasons if reason.code == "job_late")
    assert f"rank {ranks[0]}" in reason.detail


def test_ranks_in_the_place_of_others_are_named():
    context = context_without((5,), **MEGATRON)
    (reason,) = (reason for reason in health_message(list(reasons_of(context))).reasons if reason.code == "job_peers")
    assert reason.detail.endswith(f": 5 like {context.job.ranks[context.complete.rank[-1]]}.")


SLOW_STAGE = {"topology": "pipeline", "ranks": 8, "steps": 7, "faults": Faults(stage={3: 1.5}, microbatches=8)}
"""Ranks 6 and 7 are the last of four stages."""


def imbalance_of(context):
    (culprit,) = culprits_of(context).culprits
    assert culprit.candidate.cause == "stage_imbalance"
    assert {context.job.ranks[position] for position in culprit.candidate.ranks} <= {6, 7}
    return culprit


@pytest.mark.parametrize("recorded", [(0, 3, 4, 7), (1, 2, 5, 6), (0, 2, 4, 6)])
def test_one_rank_of_each_stage_shows_a_slow_stage(recorded):
    """Even if no two of them are in one pipeline: the others behave like them."""
    whole = imbalance_of(context_without((), **SLOW_STAGE)).gain
    gain = imbalance_of(context_without(set(range(8)) - set(recorded), **SLOW_STAGE)).gain
    assert gain.expected == pytest.approx(whole.expected, rel=0.05)


@pytest.mark.parametrize("recorded", [(0, 2, 6), (0, 1, 6, 7), (0, 6)])
def test_a_stage_without_a_recording_leaves_a_bound(recorded):
    """What is saved in the slow stage cannot be followed through the pipeline."""
    whole = imbalance_of(context_without((), **SLOW_STAGE)).gain
    culprit = imbalance_of(context_without(set(range(8)) - set(recorded), **SLOW_STAGE))
    assert culprit.candidate.bound is not None
    assert culprit.gain.expected == pytest.approx(whole.expected, rel=0.1)


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ((0, 4), "rank 2"),  # stages 0 and 2 of one pipeline: the stage between exchanges messages with both of them
        ((0, 1, 4, 5), None),  # replicas average their gradients
        ((0, 7), "ranks 1 and 5"),  # a replica of the one, and the stage before the other
    ],
)
def test_recordings_that_share_nothing_name_the_fewest_ranks_to_record_too(recorded, wanted):
    context = context_without(set(range(8)) - set(recorded), topology="pipeline", ranks=8)
    reasons = {reason.code: reason.detail for reason in health_message(list(reasons_of(context))).reasons}
    assert ("job_not_connected" in reasons) == (wanted is not None)
    assert is_trusted(context)
    assert wanted is None or f"shares some with {wanted}, of which" in reasons["job_not_connected"]


def test_ranks_of_a_pipeline_that_exchange_nothing_show_a_slow_stage_by_their_own_times():
    slow = {**SLOW_STAGE, "faults": Faults(stage={2: 1.6}, microbatches=16)}
    context = context_without(set(range(8)) - {0, 4}, **slow)
    assert not context.pairs.count
    (culprit,) = culprits_of(context).culprits
    assert culprit.candidate.cause == "stage_imbalance"
    assert [context.job.ranks[position] for position in culprit.candidate.ranks] == [4]
    whole = {each.candidate.cause: each.gain for each in culprits_of(context_without((), **slow)).culprits}
    assert culprit.gain.low <= whole["stage_imbalance"].expected <= culprit.gain.high


def test_a_rank_that_always_arrives_just_after_the_slowest_one_shares_its_cause():
    """All ranks of the first host are slow, with noise, and one rank of each host is recorded."""
    lengths = {}
    slow = dict.fromkeys(range(4), 0.56)
    for name, host in {"planted": slow, "fixed": {}}.items():
        job = TOPOLOGIES["experts"](Shape(ranks=8, steps=7, noise=0.05, seed=7), Faults(host=host))
        lines = execute(job)
        lengths[name] = max(line.end for line in lines)
        if name == "planted":
            context = context_of([each for each in summaries_of(job, lines) if each.facts.rank % 4 == 0])
    assert context._error(context.unhindered) > MAX_REPLAY_ERROR, "else no rank would be missed"
    (culprit,) = culprits_of(context).culprits
    assert context.job.ranks[culprit.candidate.ranks[0]] == 0
    assert culprit.gain.expected == pytest.approx(lengths["planted"] / lengths["fixed"], rel=0.06)
