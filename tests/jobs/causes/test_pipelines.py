"""Microbatches of unequal length take longer forward and backward; noise does not."""

import pytest
from helpers.simulated_jobs import context_of
from simulate.jobs.as_summaries import summaries_of
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.culprits import culprits_of


def culprits(topology="pipeline", noise=0.01, **faults):
    job = TOPOLOGIES[topology](Shape(ranks=8, steps=6, noise=noise), Faults(**faults))
    return culprits_of(context_of(summaries_of(job, execute(job)))).culprits


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
