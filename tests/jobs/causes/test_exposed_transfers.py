"""Gradients that are exchanged after each portion of a batch: the gain of exchanging them once, in simulated jobs."""

from dataclasses import replace

import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.jobs.report.job_report import jobs_of
from tb_bottleneck.jobs.report.wording import with_texts, without_texts
from tests.jobs.report.test_job_report import report_of

SYNCED = Faults(portions=4, wire=2.5)


def length(faults, seed):
    return max(line.end for line in execute(TOPOLOGIES["data"](Shape(ranks=8, steps=5, seed=seed), faults)))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("overlap", [True, False])
def test_one_exchange_in_the_place_of_four_is_simulated(seed, overlap):
    faults = replace(SYNCED, overlap=overlap)
    culprits = culprits_of(context_of(simulated(faults=faults, seed=seed))).culprits
    found = {each.candidate.cause: each for each in culprits}
    gain = found["synced_portions"].gain
    true = length(faults, seed) / length(replace(faults, synced=False), seed)
    assert true > 1.2
    assert gain.expected == pytest.approx(true, rel=0.03)
    assert gain.low <= true <= gain.high


@pytest.mark.parametrize(("device", "more"), [("NVIDIA H100", ""), ("", "more if the fix also frees CPU cores")])
@pytest.mark.parametrize(
    ("faults", "cause"), [(SYNCED, "synced_portions"), (Faults(wire=4, overlap=False), "exposed_collectives")]
)
def test_on_a_cpu_the_exchange_also_takes_cores(device, more, faults, cause):
    summaries = [replace(each, facts=replace(each.facts, device=device)) for each in simulated(faults=faults)]
    (job,) = jobs_of([report_of(each) for each in summaries], summaries)
    assert job.culprits[0].cause == cause
    assert job.verdict.action.endswith(more or ")")
    read = without_texts(job)
    with_texts(read)
    assert read.culprits[0].speedup == job.culprits[0].speedup
