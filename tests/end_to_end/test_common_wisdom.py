"""Statements of guides on slow training, checked on simulated trainings with known causes: some are wrong."""

import pytest
from simulate.examine import examine, measured
from simulate.kineto import DIALECTS, Recording
from simulate.problems import BF16, FP32, HARD_NEGATIVES, PROBLEMS
from simulate.workload import healthy, launch_bound

from tb_bottleneck.bottlenecks import FOLDER
from tb_bottleneck.bottlenecks.transfer.facts import pageable_copies
from tb_bottleneck.knowledge.catalogue import load


def causes(workload, recording=None):
    return [finding.cause for finding in examine(workload, recording).report.findings]


def busy_share(workload):
    recording = measured(workload)
    return 1 - recording.idle.total() / recording.account.window


def test_pinning_works_without_workers_too():
    """ "pin_memory does nothing with num_workers=0": the names of the copies contain the kind of memory."""
    slow = PROBLEMS["pageable copies"].make(2).but(loader="main", load_ns=0)
    assert causes(slow)[0] == "pageable_copies"
    pinned = slow.but(pinned=True)
    assert pageable_copies(measured(pinned)).value == 0
    assert "pageable_copies" not in causes(pinned)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_device_that_is_always_busy_is_the_bottleneck_and_not_the_cpu(seed):
    """ "More than 85 % utilisation means that the GPU is not the bottleneck, look at your CPU code." """
    busy = HARD_NEGATIVES["a tiny loader"](seed)
    assert busy_share(busy) > 0.85
    result = examine(busy).report
    assert (result.verdict.regime in ("compute", "memory"), result.verdict.severity) == (True, "none")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tiny_kernels_on_an_idle_device_are_bound_by_launching_and_not_by_bandwidth(seed):
    """ "15 % utilisation and hundreds of pointwise kernels: classic memory bandwidth." """
    pointwise = launch_bound(seed).but(contractions=0.0, kernel_ns=8_000, loader="")
    assert busy_share(pointwise) < 0.5
    assert examine(pointwise).report.verdict.regime == "launch"


def test_gradient_accumulation_does_not_reduce_bandwidth():
    """It keeps fewer activations in memory, but each sample's bytes are still read and written."""
    bound = healthy(1).but(contractions=0.0, loader="", layers=8)
    shares = [examine(bound.but(accumulation=times)).account["memory"] for times in (1, 4)]
    assert shares[1] == pytest.approx(shares[0], abs=0.03)
    advice = str(load("memory/texts.toml", FOLDER)).lower()
    assert "accumulat" not in advice


@pytest.mark.parametrize("name", ["a scalar read in every step", "metrics printed in every step"])
def test_a_synchronising_call_alone_is_no_stall(name):
    """ "Look for cudaStreamSynchronize": on a busy device it costs almost nothing, even if it takes long."""
    result = examine(HARD_NEGATIVES[name](2))
    assert result.account["sync"] < 0.02
    assert result.report.verdict.severity == "none"


def test_a_value_of_a_tensor_on_the_cpu_is_read_without_waiting():
    """ "aten::item synchronises": optimizers read step counts that are on the CPU."""
    reading = launch_bound(2).but(cpu_reads=100)
    assert not {"scalar_reads", "metric_reads"} & set(causes(reading))
    assert examine(reading).account["sync"] < 0.02


@pytest.mark.parametrize(("name", "advised"), [(FP32, True), (BF16, False)])
def test_mixed_precision_is_advised_only_if_it_is_off(name, advised):
    products = healthy(3).but(contractions=0.9, product_name=name, loader="")
    assert bool({"fp32_matmul", "fp32_without_tf32"} & set(causes(products))) is advised


def test_bf16_on_amds_matrix_units_is_no_missing_mixed_precision():
    """A list of NVIDIA's kernel names alone would advise every AMD user to turn it on."""
    name = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x64x128_MI16x16x1_SN_LDSB1_AFC1"
    products = healthy(3).but(contractions=0.9, product_name=name, loader="")
    assert not {"fp32_matmul", "fp32_without_tf32"} & set(causes(products, Recording(DIALECTS[4])))


def test_collectives_beside_computing_cost_nothing():
    result = examine(HARD_NEGATIVES["overlapped collectives"](1))
    assert result.account["communication"] < 0.05
    assert not [finding for finding in result.report.findings if finding.regime == "communication"]


def test_a_launch_call_that_blocks_because_the_queue_is_full_is_no_overhead():
    """ "cudaLaunchKernel takes most of the CPU's time": a busy device makes the host wait in it."""
    result = examine(HARD_NEGATIVES["a full launch queue"](1))
    assert result.account["launch"] < 0.02
    assert result.report.verdict.severity == "none"
