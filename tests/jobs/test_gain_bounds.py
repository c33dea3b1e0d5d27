"""The interval of a gain has every known source of error, each as large as its source says."""

from dataclasses import replace
from math import exp, hypot, log

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.replay.gain import gain_in_part
from tb_bottleneck.replay.validation import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE

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
