"""Tests that planted causes are found on their ranks, and nothing in healthy jobs.

The interval of a gain has every known source of error, each as large as its source says.
"""

from dataclasses import replace
from math import exp, hypot, log

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, of_case, planted, simulated
from simulate.jobs.cases import PLANTERS, healthy, planted_two
from simulate.jobs.topologies import Faults

from tb_bottleneck.base.deviations import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.jobs.causes import slow_ranks
from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.replay.gain import gain_in_part

SLOW_HOST_WORK = Faults(host={6: 0.5})


def gain_of(summaries):
    """Returns the gain of the only culprit."""
    (culprit,) = culprits_of(context_of(summaries)).culprits
    return culprit.gain


def above(gain):
    return log(gain.high / gain.expected)


def below(gain):
    return log(gain.expected / gain.low)


def test_a_fix_may_take_effect_in_part():
    gain = gain_of(simulated(faults=SLOW_HOST_WORK))
    assert gain.low < gain_in_part(gain.expected) < gain.expected


def test_a_host_with_one_rank_is_no_slow_host():
    alone = [
        replace(each, facts=replace(each.facts, host=f"node{each.facts.rank}"))
        for each in simulated(faults=SLOW_HOST_WORK)
    ]
    (culprit,) = culprits_of(context_of(alone)).culprits
    assert (culprit.candidate.cause, culprit.candidate.ranks) == ("slow_rank", (6,))


def test_a_device_does_not_drift_like_a_host():
    throttled = simulated(faults=Faults(device={6: 1.5}))
    assert above(gain_of(throttled)) < 2 * RUN_TO_RUN_NOISE
    on_cpu = [replace(summary, facts=replace(summary.facts, device="")) for summary in throttled]
    drift = hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE)
    assert 0.8 * drift < above(gain_of(on_cpu)) < 1.3 * drift


def test_dispatching_may_be_slower_with_the_profiler():
    recorded = simulated(faults=SLOW_HOST_WORK)
    dispatching = []
    for summary in recorded:
        account = summary.account.copy()
        account[:, REGIMES.index(Regime.LAUNCH)] += account[:, REGIMES.index(Regime.HOST)]
        account[:, REGIMES.index(Regime.HOST)] = 0
        dispatching.append(replace(summary, account=account))
    assert below(gain_of(dispatching)) > below(gain_of(recorded)), "a part of the slow host is the profiler"
    assert gain_of(dispatching).expected == gain_of(recorded).expected


def test_steps_that_differ_by_chance_widen_the_interval():
    calm = simulated(faults=SLOW_HOST_WORK)
    random, restless = np.random.default_rng(1), []
    factors = random.uniform(0.6, 1.4, calm[0].steps)
    for summary in calm:
        step = np.clip(np.searchsorted(summary.edges, summary.points.time, side="right") - 1, 0, summary.steps - 1)
        device = (summary.points.device * factors[step]).astype(np.int64)
        restless.append(replace(summary, points=replace(summary.points, device=device)))
    assert above(gain_of(restless)) > above(gain_of(calm)) + 0.1


def test_an_inexact_replay_widens_the_interval():
    summaries = simulated(faults=SLOW_HOST_WORK)
    exact = gain_of(summaries)
    context = context_of(summaries)
    context.__dict__["recorded_ns"] = context.replay.length * exp(0.1)
    (culprit,) = culprits_of(context).culprits
    error = log(1 + context.error)
    assert above(culprit.gain) == pytest.approx(hypot(above(exact), error), rel=0.01)


def found(summaries):
    verdict = culprits_of(context_of(summaries))
    return {culprit.candidate.cause: frozenset(culprit.candidate.ranks.tolist()) for culprit in verdict.culprits}


@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("cause", PLANTERS)
def test_a_planted_cause_is_found_on_its_ranks(cause, seed):
    case, summaries = planted(cause, seed)
    causes = found(summaries)
    assert set(causes) == {cause}
    assert not case.causes[cause] or causes[cause] == case.causes[cause]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 5))])
def test_healthy_jobs_have_no_culprit(seed):
    assert found(of_case(healthy(seed))) == {}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 4))])
def test_two_causes_are_found_at_once(seed):
    case = planted_two(seed)
    assert set(found(of_case(case))) == set(case.causes)


def test_the_order_of_the_ranks_does_not_matter():
    summaries = simulated("tensor", Faults(host={3: 0.3}, device={6: 1.3}))
    one, other = (culprits_of(context_of(order)) for order in (summaries, summaries[::-1]))
    assert [(c.candidate.cause, c.gain) for c in one.culprits] == [(c.candidate.cause, c.gain) for c in other.culprits]


def test_two_culprits_that_hide_each_other_are_both_named():
    """Either fix alone gains almost nothing; both together do."""
    context = context_of(simulated("data", Faults(host={1: 0.4}, input={6: 0.4})))
    verdict = culprits_of(context)
    assert {c.candidate.cause for c in verdict.culprits} == {"slow_rank", "rank_input"}
    assert verdict.gain.expected > 1.25
    assert max(c.gain.expected for c in verdict.culprits) < 1.1


def test_a_victim_is_not_blamed():
    """Rank 0 of a pipeline waits for rank 6, over stages that wait for each other."""
    context = context_of(simulated("pipeline", Faults(host={6: 0.6})))
    (culprit,) = culprits_of(context).culprits
    assert (culprit.candidate.cause, culprit.candidate.ranks.tolist()) == ("slow_rank", [6])


def test_evidence_of_a_slow_rank_says_whom_the_others_wait_for():
    context = context_of(simulated("data", Faults(host={2: 0.5})))
    assert slow_ranks.origin_share(context, np.array([2])) > 0.9
    assert slow_ranks.origin_share(context, np.array([5])) < 0.1


@pytest.mark.parametrize(("topology", "steps"), [("tensor", 1), ("pipeline", 1), ("experts", 2), ("sharded", 2)])
def test_few_steps_are_divided_by_their_collectives(topology, steps):
    context = context_of(simulated(topology, Faults(host={3: 0.5}), steps=steps))
    assert not context.own.by_step
    assert [(c.candidate.cause, c.candidate.ranks.tolist()) for c in culprits_of(context).culprits] == [
        ("slow_rank", [3])
    ]
    assert not culprits_of(context_of(simulated(topology, steps=steps))).culprits


def test_one_step_of_few_collectives_names_nobody():
    context = context_of(simulated("data", Faults(host={3: 0.5}), steps=1))
    assert not culprits_of(context).culprits


@pytest.mark.parametrize("seed", [10010, pytest.param(10012, marks=pytest.mark.nightly)])
def test_a_cause_is_named_once_and_fixed_once(seed):
    """One rank has more work in almost all steps, others in some: both signs are of one cause."""
    context = context_of(planted("data_imbalance", seed)[1])
    verdict = culprits_of(context)
    assert [c.candidate.cause for c in verdict.culprits] == ["data_imbalance"]
    assert len(verdict.culprits[0].candidate.ranks) > 3
    assert verdict.gain.expected == pytest.approx(verdict.culprits[0].gain.expected)


def test_uneven_microbatches_are_evened_also_if_a_rank_has_more_work_in_most_steps():
    case, summaries = planted("data_imbalance", 5_000_014)
    context = context_of(summaries)
    fixed = context_of(of_case(replace(case, faults=case.fixed)))
    (culprit,) = culprits_of(context).culprits
    assert "excess_ns" in culprit.candidate.facts, "the first sign: more work in most steps"
    assert culprit.gain.expected == pytest.approx(context.recorded_ns / fixed.recorded_ns, rel=0.02)
