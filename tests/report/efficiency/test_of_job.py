"""The figures of a job are those of its ranks together, or say why not."""

import pytest

from tb_bottleneck.knowledge.texts import job_figure_texts
from tb_bottleneck.measures.efficiency.figure import known
from tb_bottleneck.report.efficiency.figures import add_figures
from tb_bottleneck.report.efficiency.of_job import job_efficiency
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report(mfu=0.4, peak=1e14, step_ms=100.0, samples=8, **figures):
    found = pb.Report(window=pb.Window(basis="profiler_step"))
    found.window.step_ns.mean = step_ms * 1e6
    add_figures(
        found.efficiency,
        {field: known(value, "derived") for field, value in ({"mfu": mfu, "peak_flops": peak} | figures).items()},
    )
    found.efficiency.samples_per_step = samples
    return found


def because(found, field):
    return next(note.because for note in found.notes if note.field == field)


def test_samples_and_energy_are_sums_and_the_time_is_that_of_the_job():
    ranks = [
        report(samples=8, joules_per_step=30.0, goodput=0.9),
        report(samples=24, joules_per_step=50.0, goodput=0.7),
    ]
    found = job_efficiency(ranks, 2, {"data"})
    assert (found.samples_per_step, found.samples_per_second) == (32, pytest.approx(320))
    assert found.joules_per_step == 80
    assert found.goodput == pytest.approx(0.8)


def test_the_utilisation_counts_operations_and_not_ranks():
    ranks = [report(mfu=0.6, peak=1e14), report(mfu=0.2, peak=3e14)]
    assert job_efficiency(ranks, 2, {"data"}).mfu == pytest.approx((0.6 * 1 + 0.2 * 3) / 4)
    slower = [report(mfu=0.4, step_ms=100.0), report(mfu=0.4, step_ms=300.0)]
    assert job_efficiency(slower, 2, {"data"}).mfu == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("world", "kinds", "key"),
    [
        (2, {"data", "tensor"}, "shared_samples"),
        (2, set(), "groups_unknown"),
        (2, {"unknown"}, "groups_unknown"),
        (4, {"data"}, "ranks_missing"),
    ],
)
def test_a_sum_that_would_be_wrong_is_not_stated(world, kinds, key):
    found = job_efficiency([report(), report()], world, kinds)
    assert not found.HasField("samples_per_second")
    assert because(found, "samples_per_second") == job_figure_texts()[key]
    assert found.mfu == pytest.approx(0.4)


def test_what_one_rank_does_not_have_the_job_does_not_have():
    lacking = report()
    lacking.efficiency.ClearField("mfu")
    found = job_efficiency([report(), lacking], 2, {"data"})
    assert because(found, "mfu") == job_figure_texts()["some_ranks"]
    assert job_efficiency([pb.Report(), pb.Report()], 2, {"data"}) is None
