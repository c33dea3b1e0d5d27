"""Real public recordings, compared as a user would: the comparison names what changed between them."""

import os
from pathlib import Path

import pytest

from tb_bottleneck.comparison.compare import compare
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, judge_run
from tb_bottleneck.comparison.series.run_series import series_of
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if

TRACES = Path(os.environ.get("TB_BOTTLENECK_TRACES", ""))
pytestmark = pytest.mark.skipif(
    "TB_BOTTLENECK_TRACES" not in os.environ, reason="TB_BOTTLENECK_TRACES names no folder of labelled traces"
)


def path(name):
    return str(TRACES / f"{name}.json.gz")


def run(name):
    found = judge_run(name, [path(name)])
    assert isinstance(found, ComparedRun), found
    return found


def test_four_workers_took_the_wait_for_data_away():
    result = compare(path("kineto_resnet50_nw0_v19_a"), path("kineto_resnet50_nw4_v19_a"))
    assert result.significant
    assert 1.25 < result.speedup < 1.4
    assert min(result.by_regime, key=lambda bar: bar.delta_ns).regime == "input"
    assert "loader_in_main_process" in result.causes.lost
    assert result.per == "step"
    assert result.a_batch.samples == result.b_batch.samples == 32


def test_batches_of_2_16_and_128_are_a_sweep_per_sample():
    result = series_of([run(name) for name in ("ptf_bs128_steady_a", "ptf_bs2_steady", "ptf_bs16_steady")])
    assert (result.varies, result.per) == ("samples per step", "sample")
    assert [point.value for point in result.points] == ["2", "16", "128"]
    assert [point.regime for point in result.points] == ["launch", "launch", "memory"]
    assert "values beyond 128 were not recorded" in result.headline


@pytest.mark.parametrize(("recorded", "samples"), [(2, 16), (2, 128), (16, 128)])
def test_a_larger_batch_is_predicted_within_a_tenth(recorded, samples):
    measured = run({16: "ptf_bs16_steady", 128: "ptf_bs128_steady_a"}[samples])
    result = what_if(run(f"ptf_bs{recorded}_steady"), WhatIfOptions(batch=samples))
    assert result.after.step_ns == pytest.approx(measured.step_ns / samples, rel=0.1)


def test_an_h100_that_waits_for_data_gains_little_by_an_h200():
    result = what_if(run("h100_owlv2"), WhatIfOptions(device="NVIDIA H200"))
    assert result.regime == "input"
    assert result.after.speedup < 1.25
    assert result.fix_first[0].cause == "loader_in_main_process"


def test_a_first_batch_is_not_compared():
    result = compare(path("ptf_bs2_first_batch"), path("ptf_bs2_steady"))
    assert not result.comparable
    assert "warm" in " ".join(result.notes) or "starting" in " ".join(result.notes)


def test_two_ranks_of_one_job_are_not_six_times_apart():
    """One of them has six losses in each step; they were taken for six passes over six times the samples."""
    result = compare(path("hta_dlrm128_sampled__rank0"), path("hta_dlrm128_sampled__rank1"))
    assert result.per == "step"
    assert not result.significant
    assert result.speedup == pytest.approx(1, abs=0.02)


def test_a_run_that_left_its_device_idle_is_said_to_be_on_the_cpu():
    """Both heads name the same A100; on one side it had nothing to do."""
    result = compare(path("ptf_bs16_steady"), path("ptf_cpu_only_eval"))
    assert "do different work" not in result.headline
    assert result.headline.endswith("B ran on the CPU, and A on a device.")
    assert next(row for row in result.context if row.key == "device").b == "CPU"


@pytest.mark.parametrize("name", ["h100_owlv2", "ptf_bs128_steady_a", "mi300_vit_nsfw", "mi300_sdpa"])
def test_products_in_half_precision_gain_nothing_from_it(name):
    assert not what_if(run(name), WhatIfOptions(precision="bf16")).HasField("after")


@pytest.mark.parametrize("link", ["gen3x1", "gen5x16"])
def test_copies_take_what_their_bytes_take_on_the_link(link):
    """70.7 MB a step in 8.4 ms, a third of what the best link could do: it took 32 times as long on a lane of gen 3."""
    result = what_if(run("hta_torchrec_a100_ws8"), WhatIfOptions(link=link))
    transfer = next(bar for bar in result.by_regime if bar.regime == "transfer")
    assert transfer.b_ns < (95e6 if link == "gen3x1" else transfer.a_ns)


def test_other_models_get_no_expected_time():
    result = compare(path("h100_bert_small"), path("mi300_vit_nsfw"))
    assert "do different work" in result.headline
    assert not result.HasField("expected")
