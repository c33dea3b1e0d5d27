"""What holds up a pipeline: unequal microbatches, one of its ranks, a stage, its messages; noise does not."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.simulated_jobs import context_of
from simulate.jobs.as_summaries import summaries_of
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.causes import slow_ranks
from tb_bottleneck.jobs.causes.pipelines import even_layers
from tb_bottleneck.jobs.culprits import culprits_of


def culprits(topology="pipeline", noise=0.01, ranks=8, attentions=None, **faults):
    job = TOPOLOGIES[topology](Shape(ranks=ranks, steps=6, noise=noise), Faults(**faults))
    summaries = summaries_of(job, execute(job))
    if attentions is not None:
        facts = [replace(each.facts, attentions=attentions(each.facts.rank)) for each in summaries]
        summaries = [replace(each, facts=of) for each, of in zip(summaries, facts, strict=True)]
    return culprits_of(context_of(summaries)).culprits


@pytest.mark.parametrize("topology", ["pipeline", "zero_bubble"])
def test_unequal_microbatches_are_told_by_both_passes(topology):
    (culprit,) = culprits(topology, data=0.3)
    assert culprit.candidate.cause == "data_imbalance"
    assert culprit.candidate.facts["passes_correlation"] > 0.9


def test_a_small_deviation_of_both_passes_counts_too():
    (culprit,) = culprits(data=0.1)
    assert culprit.candidate.cause == "data_imbalance"
    assert culprit.gain.expected < 1.08


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_noise_is_no_imbalance(noise):
    assert "data_imbalance" not in {culprit.candidate.cause for culprit in culprits(noise=noise)}


@pytest.mark.parametrize("topology", ["pipeline", "interleaved", "zero_bubble"])
@pytest.mark.parametrize(
    ("planted", "cause", "rank"),
    [
        ({"device": {1: 1.3}}, "throttled_rank", 1),
        ({"stage": {3: 1.3}}, "stage_imbalance", 3),
        ({"host": {2: 0.3}}, "slow_rank", 2),
        ({"input": {0: 0.3}}, "rank_input", 0),
    ],
)
def test_what_holds_up_a_rank_is_told_in_a_pipeline_of_one_rank_per_stage(topology, planted, cause, rank):
    (culprit,) = culprits(topology, ranks=4, **planted)
    assert (culprit.candidate.cause, culprit.candidate.ranks.tolist()) == (cause, [rank])


@pytest.mark.parametrize(("topology", "ranks"), [("pipeline", 8), ("megatron", 64), ("pipeline", 256)])
@pytest.mark.parametrize(("planted", "cause"), [({"device": {5: 1.3}}, "slow_rank"), ({"data": 0.2}, "data_imbalance")])
def test_published_jobs_have_no_shapes_and_kernels_of_three_kinds(topology, ranks, planted, cause):
    """Without counters, a rank whose optimizer is as fast as that of its peers does not have a slow device. The stages
    differ a little."""
    job = TOPOLOGIES[topology](Shape(ranks=ranks, steps=3), Faults(**planted, stage={0: 1.02, 3: 1.05}))
    summaries = []
    for each in summaries_of(job, execute(job)):
        work = replace(each.work, elements=0 * each.work.elements, uploaded=0 * each.work.uploaded)
        kernels = replace(each.kernels, median=np.append(each.kernels.median[:2], 50_000))
        summaries.append(replace(each, work=work, kernels=kernels))
    first = culprits_of(context_of(summaries)).culprits[0]
    assert first.candidate.cause == cause
    assert cause == "data_imbalance" or first.candidate.ranks.tolist() == [5]
    assert first.gain.expected > 1.05


def test_a_device_is_not_blamed_on_its_work_if_it_has_no_more_of_it(monkeypatch):
    monkeypatch.setattr(slow_ranks, "kernel_ratio", lambda *_: 1.0)
    (culprit,) = culprits(ranks=4, device={1: 1.3})
    assert (culprit.candidate.cause, culprit.candidate.ranks.tolist()) == ("slow_rank", [1])


def test_a_slow_device_and_a_large_stage_are_both_named():
    found = {culprit.candidate.cause: culprit for culprit in culprits(ranks=4, device={0: 1.3}, stage={2: 1.5})}
    assert {cause: each.candidate.ranks.tolist() for cause, each in found.items()} == {
        "throttled_rank": [0],
        "stage_imbalance": [2],
    }
    assert found["stage_imbalance"].candidate.facts["stage_ratio"] == pytest.approx(1.5 / 1.125, rel=0.03)


PAIRS = [f"{a}->{b}" for a in range(8) for b in range(8)]


@pytest.mark.parametrize(
    ("topology", "cause", "links"),
    [
        ("pipeline", "exposed_messages", PAIRS),
        ("interleaved", "exposed_messages", PAIRS),
        ("zero_bubble", "exposed_messages", PAIRS),
        ("tensor", "exposed_layers", ["t0", "t1"]),
    ],
)
def test_the_bound_of_exposed_transfers_is_the_job_without_them(topology, cause, links):
    (culprit,) = [each for each in culprits(topology, wire=8.0) if each.candidate.cause == cause]
    faults = (Faults(wire=8.0), Faults(wire=8.0, link=dict.fromkeys(links, 1e-6)))
    jobs = [TOPOLOGIES[topology](Shape(ranks=8, steps=6), each) for each in faults]
    before, after = (max(line.end for line in execute(job)) for job in jobs)
    assert culprit.candidate.bound is not None
    assert culprit.gain.expected == pytest.approx(before / after, rel=0.03)
    assert before / after > 1.2


@pytest.mark.parametrize(
    ("topology", "description", "cause"),
    [
        ("pipeline", "CONTEXT_PARALLEL_GROUP", "exposed_layers"),  # ring attention sends keys and values
        ("tensor", "EMBEDDING_GROUP", None),  # at the end of a step, not within the layers
    ],
)
def test_the_kind_of_the_group_tells_what_is_exposed(topology, description, cause):
    job = TOPOLOGIES[topology](Shape(ranks=8, steps=6), Faults(wire=8.0))
    summaries = [
        replace(each, groups=tuple(replace(group, description=description) for group in each.groups))
        for each in summaries_of(job, execute(job))
    ]
    found = {each.candidate.cause for each in culprits_of(context_of(summaries)).culprits}
    assert {name for name in found if name.startswith("exposed")} == ({cause} if cause else set())


@pytest.mark.parametrize("topology", ["pipeline", "interleaved", "zero_bubble", "megatron", "tensor"])
def test_usual_transfers_are_no_cause(topology):
    assert culprits(topology, ranks=16) == ()


def true_gain(before, after, **shape):
    """The gain of other factors of the stages."""
    lengths = []
    for stage in (before, after):
        job = TOPOLOGIES["pipeline"](Shape(steps=6, **shape), Faults(stage=stage, microbatches=12))
        lengths.append(max(line.end for line in execute(job)))
    return lengths[0] / lengths[1]


@pytest.mark.parametrize("ranks", [4, 8])
def test_whole_layers_are_moved(ranks):
    """Eight layers per stage, and a loss on the last one that takes as long as three layers."""
    planted = {"stage": {3: 11 / 8}, "microbatches": 12}
    (culprit,) = culprits(ranks=ranks, attentions=lambda rank: 8 * 12, **planted)
    assert culprit.candidate.facts["layers"] == [8, 8, 8, 8]
    assert culprit.candidate.facts["even_layers"] == [9, 9, 8, 6]
    true = true_gain({3: 11 / 8}, {0: 9 / 8, 1: 9 / 8, 2: 1.0, 3: 9 / 8}, ranks=ranks, noise=0.01)
    assert culprit.gain.expected == pytest.approx(true, rel=0.01)


@pytest.mark.parametrize(
    "attentions", [lambda rank: 0, lambda rank: 8 * rank, lambda rank: 9, lambda rank: 16 << 30, lambda rank: -16]
)
def test_layers_that_are_not_known_are_not_counted(attentions):
    (culprit,) = culprits(stage={3: 1.4}, attentions=attentions)
    assert culprit.candidate.facts.keys() == {"stage", "stage_ratio", "move_share"}


def test_a_stage_that_no_whole_layer_makes_faster_keeps_its_layers():
    """One layer per stage: only what else the last stage does can become faster, which makes no other stage slower."""
    (culprit,) = culprits(stage={3: 1.4}, attentions=lambda rank: 16)
    assert "layers" not in culprit.candidate.facts
    assert culprit.gain.expected == pytest.approx(true_gain({3: 1.4}, {3: 1.1}, ranks=8), rel=0.02)


def test_a_stage_without_device_time_has_no_layers():
    found = {each.candidate.cause: each for each in culprits(stage={0: 1e-9}, attentions=lambda rank: 96)}
    assert "layers" not in found["stage_imbalance"].candidate.facts


@pytest.mark.parametrize(
    ("layers", "times", "even"),
    [
        ([8, 8, 8, 8], [8, 8, 8, 11], [9, 9, 8, 6]),
        ([8, 8], [8, 9], [8, 8]),
        ([10, 8, 8, 6], [20, 16, 16, 12], [8, 8, 8, 8]),
        ([2, 2], [2, 12], [4, 0]),
    ],
)
def test_the_slowest_stage_becomes_as_fast_as_whole_layers_allow(layers, times, even):
    assert even_layers(layers, np.array(times, float))[0] == even


@pytest.mark.parametrize("left_out", [0, 3])
def test_microbatches_are_counted_without_the_first_or_the_last_stage(left_out):
    """A stage in between sends each microbatch twice: forward and backward."""
    job = TOPOLOGIES["pipeline"](Shape(ranks=8, steps=6), Faults(microbatches=4))
    recorded = [each for each in summaries_of(job, execute(job)) if each.facts.rank // 2 != left_out]
    (bubble,) = culprits_of(context_of(recorded)).culprits
    assert bubble.candidate.cause == "pipeline_bubble"
    assert bubble.candidate.facts["microbatches"] == 4


@pytest.mark.parametrize(("topology", "kept"), [("pipeline", 4), ("zero_bubble", 4), ("pipeline", 2)])
def test_unequal_microbatches_are_told_from_some_ranks(topology, kept):
    """One rank in four of eight: stages 0 and 2 of one replica, which exchange no message. One in two: one replica."""
    lengths = {}
    for data in (0.3, 0.0):
        job = TOPOLOGIES[topology](Shape(ranks=8, steps=7), Faults(data=data))
        lines = execute(job)
        lengths[data] = max(line.end for line in lines)
        if data:
            summaries = [each for each in summaries_of(job, lines) if each.facts.rank % kept == 0]
            (culprit,) = culprits_of(context_of(summaries)).culprits
    assert culprit.candidate.cause == "data_imbalance"
    assert culprit.gain.expected == pytest.approx(lengths[0.3] / lengths[0.0], rel=0.08)


def test_unrecorded_ranks_have_as_much_work_as_most():
    """Rank 4 of eight always has 1.6 times the work; only it and rank 0 are recorded."""
    lengths = {}
    for name, faults in {"planted": Faults(fixed_data={4: 1.6}), "fixed": Faults(work=8.6 / 8)}.items():
        job = TOPOLOGIES["tensor"](Shape(ranks=8, steps=7), faults)
        lines = execute(job)
        lengths[name] = max(line.end for line in lines)
        if name == "planted":
            summaries = [each for each in summaries_of(job, lines) if each.facts.rank % 4 == 0]
            (culprit,) = culprits_of(context_of(summaries)).culprits
    assert (culprit.candidate.cause, culprit.candidate.ranks.tolist()) == ("data_imbalance", [1])
    assert culprit.gain.expected == pytest.approx(lengths["planted"] / lengths["fixed"], rel=0.03)
