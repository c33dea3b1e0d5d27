"""The parts of a shortfall with their causes: dispatching, an old library, other kernels, a link."""

import json
from dataclasses import replace

import pytest
from comparison.drawn_runs import A100, H200, V100, context, judged, repeated
from helpers.draw import drawn

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.devices.expected_time import device_pair_of, expected_time
from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor
from tb_bottleneck.comparison.devices.shortfall import shortfall_between, shortfall_parts
from tb_bottleneck.comparison.runs.compared_run import judge_run

BOUND = repeated(9, op="##......", launch=".|......", gpu="..######", sync="..######")
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16"


def run(tmp_path, name, drawing, device, kernel=TF32, **header):
    """Returns a run with products by this kernel."""
    text = json.dumps(drawn(drawing, 1000.0, deviceProperties=[device], **header))
    path = tmp_path / f"{name}.pt.trace.json"
    path.write_text(text.replace(TF32, kernel).replace("Pageable", "Pinned" if "pinned" in name else "Pageable"))
    return judge_run(name, [str(path)])


def remainder(a, b):
    result = compare_runs(a, b)
    assert result.HasField("expected"), result.headline
    missing = (result.b_ns - result.expected.b_ns) / result.b_ns
    assert sum(part.share for part in result.expected.shortfall) == pytest.approx(missing)
    return {part.cause: part for part in result.expected.shortfall}


def test_a_correct_prediction_leaves_only_tiny_parts(tmp_path):
    """2.9 times as fast on the tensor cores: six columns of products become two."""
    kept = repeated(9, op="##..", launch=".|..", gpu="..##", sync="..##")
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", kept, H200))
    assert found.keys() == {"unexplained"}
    assert abs(found["unexplained"].share) < 0.05


def test_more_dispatching_is_named_by_the_diagnosis_of_b(tmp_path):
    late = repeated(9, op="######..", launch=".....|..", gpu="......##", sync="......##")
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", late, H200))
    assert "launch_bound" in found or "small_kernels" in found
    part = found.get("launch_bound") or found["small_kernels"]
    assert part.share > 0.3
    assert "expected: " in part.because


def test_products_that_left_the_tensor_cores(tmp_path):
    found = remainder(
        run(tmp_path, "a", BOUND, A100),
        run(tmp_path, "b", BOUND, H200, "ampere_sgemm_128x64_tn"),
    )
    assert found["tensor_cores_unused"].share > 0.3
    assert "tf32 (tensor)" in found["tensor_cores_unused"].because


def test_products_that_always_ran_on_ordinary_units_left_none(tmp_path):
    """They take a larger share of shorter steps: "fp32 on B, in fp32 on A" were tensor cores unused."""
    idle = repeated(9, loader="########......", op="........##....", launch=".........|....", gpu="..........####")
    busy = repeated(9, op="##....", launch=".|....", gpu="..####")
    runs = [run(tmp_path, n, d, g, "ampere_sgemm_128x64_tn") for n, d, g in (("a", idle, A100), ("b", busy, H200))]
    assert "tensor_cores_unused" not in remainder(*runs)


def test_libraries_that_are_older_than_the_device(tmp_path):
    old = {**H200, "computeMajor": 9, "computeMinor": 0}
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", BOUND, old, cuda_runtime_version=11070))
    said = found["old_libraries"].because
    assert said == "CUDA runtime 11.7 is older than the device, which needs CUDA 11.8 or later"


def test_a_driver_that_is_older_than_the_device(tmp_path):
    new = {**H200, "computeMajor": 9, "computeMinor": 0}
    versions = {"cuda_runtime_version": 12040, "cuda_driver_version": 11060}
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", BOUND, new, **versions))
    assert found["old_libraries"].because.startswith("driver's CUDA version 11.6 is older than the device")


def test_other_kernels_for_the_same_operator(tmp_path):
    other = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x8"
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", BOUND, H200, other))
    assert found["other_kernels"].share > 0.3
    assert "tilesize64x64x8" in found["other_kernels"].because


def test_what_nothing_names_stays_unexplained(tmp_path):
    """The same kernels take as long on the faster device, and the recording does not show why."""
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", BOUND, H200))
    assert found.keys() == {"unexplained"}
    assert found["unexplained"].share > 0.3


def test_a_link_that_is_not_what_it_should_be(tmp_path):
    """Each copy moves 1 MiB in two columns of 1 ms: half a GB/s."""
    copying = repeated(9, op="##......", launch=".||.....", h2d="..##....", gpu="....##..", sync="..####..")
    short = repeated(9, op="##....", launch=".||...", h2d="..#...", gpu="...##.", sync="..###.")
    found = remainder(run(tmp_path, "pinned a", short, V100), run(tmp_path, "pinned b", copying, H200))
    assert "degraded_link" in found
    assert "reach 0.5 GB/s" in found["degraded_link"].because


def test_a_larger_batch_that_shares_what_a_step_costs_once(tmp_path):
    late = repeated(9, op="######..", launch=".....|..", gpu="......##", sync="......##")
    a = run(tmp_path, "a", late, A100, tb_bottleneck=context(batch_size=8))
    b = run(tmp_path, "b", late, H200, tb_bottleneck=context(batch_size=64))
    found = remainder(a, b)
    assert found["batch_grown"].share < 0
    assert "64 samples instead of 8" in found["batch_grown"].because


def test_a_smaller_batch_carries_more_of_the_fixed_cost_of_a_step(tmp_path):
    """The text said that its samples share more, although they share less."""
    late = repeated(9, op="######..", launch=".....|..", gpu="......##", sync="......##")
    a = run(tmp_path, "a", late, A100, tb_bottleneck=context(batch_size=64))
    b = run(tmp_path, "b", late, H200, tb_bottleneck=context(batch_size=8))
    found = remainder(a, b)
    assert "batch_grown" not in found
    assert found["batch_shrunk"].share > 0
    assert "8 samples instead of 64, so each carries more" in found["batch_shrunk"].because


@pytest.mark.parametrize("cause", ["thermal_throttle", "power_cap"])
def test_a_throttled_device_is_named_by_its_own_diagnosis(tmp_path, cause):
    a, b = run(tmp_path, "a", BOUND, A100), judged(tmp_path, BOUND, device=H200, unit_us=1000)
    b.report.findings.add(cause=cause, regime="compute", cost_share=0.4)
    found = remainder(a, b)
    assert found[cause].share > 0.3


LATE = repeated(9, op="######..", launch=".....|..", gpu="......##", sync="......##")
STARVED = repeated(9, workers="####....", op="....##..", launch=".....|..", gpu="......##", sync="......##")


def unfound(run):
    """Returns the same run, as if its own diagnosis had found no cause."""
    del run.report.findings[:]
    return run


def test_a_device_that_waits_for_data(tmp_path):
    found = remainder(run(tmp_path, "a", BOUND, A100), unfound(run(tmp_path, "b", STARVED, H200)))
    assert found["starved"].share > 0.3
    assert "waiting for data takes 4.00 ms per step, expected: nothing" in found["starved"].because


def test_a_device_that_waits_for_launches(tmp_path):
    found = remainder(run(tmp_path, "a", BOUND, A100), unfound(run(tmp_path, "b", LATE, H200)))
    assert found["launch_bound"].share > 0.3


@pytest.mark.parametrize(("ratio", "cause"), [(1.4, "slower_host"), (1.05, "launch_bound")])
def test_a_slower_host_is_recognised_by_the_same_operators(tmp_path, ratio, cause):
    """operator_time.py measures the ratio; here, it only counts if it is beyond the usual variation."""
    a, b = run(tmp_path, "a", BOUND, A100), unfound(run(tmp_path, "b", LATE, H200))
    move = device_pair_of(a.recording, b.recording)
    gap = shortfall_between(
        (a, b), move, (expected_time(ReplayPredictor(a.recording), move).step.ns, b.ns), "step", None
    )
    found = {part.cause: part for part in shortfall_parts(replace(gap, ratio=ratio))}
    assert found[cause].share > 0.3
    assert ("1.40 times as long on B's host" in found[cause].because) == (cause == "slower_host")


def test_a_batch_that_did_not_grow_with_the_device(tmp_path):
    """Eight samples fill neither device, and less of the larger one: its kernels gain less than their roof says."""
    small = {"tb_bottleneck": context(batch_size=8)}
    a, b = run(tmp_path, "a", BOUND, A100, **small), run(tmp_path, "b", BOUND, H200, **small)
    move = device_pair_of(a.recording, b.recording)
    gap = shortfall_between(
        (a, b), move, (expected_time(ReplayPredictor(a.recording), move).step.ns, b.ns), "step", None
    )
    moved = gap.measured | {"underfilled": gap.measured["compute"], "compute": gap.measured["underfilled"]}
    found = {part.cause: part for part in shortfall_parts(replace(gap, measured=moved))}
    assert found["batch_not_grown"].share > 0.3
    assert "8 samples, with 132 multiprocessors instead of 108" in found["batch_not_grown"].because
