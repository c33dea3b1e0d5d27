"""What a promise was not kept by, each part with its name: dispatching, an old library, other kernels, a link."""

import json

import pytest
from comparison.sides import A100, H200, V100, context, judged, repeated
from draw import drawn

from tb_bottleneck.comparison.comparing import compare_sides
from tb_bottleneck.comparison.side import open_side

BOUND = repeated(9, op="##......", launch=".|......", gpu="..######", sync="..######")
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16"


def run(tmp_path, name, drawing, device, kernel=TF32, **header):
    """A run whose products are by this kernel."""
    text = json.dumps(drawn(drawing, 1000.0, deviceProperties=[device], **header))
    path = tmp_path / f"{name}.pt.trace.json"
    path.write_text(text.replace(TF32, kernel).replace("Pageable", "Pinned" if "pinned" in name else "Pageable"))
    return open_side(name, [str(path)])


def remainder(a, b):
    told = compare_sides(a, b)
    assert told.HasField("expected"), told.headline
    missing = (told.b_ns - told.expected.b_ns) / told.b_ns
    assert sum(part.share for part in told.expected.remainder) == pytest.approx(missing)
    return {part.cause: part for part in told.expected.remainder}


def test_a_promise_that_was_kept_leaves_crumbs_only(tmp_path):
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
    assert "were expected" in part.because


def test_products_that_left_the_tensor_cores(tmp_path):
    found = remainder(
        run(tmp_path, "a", BOUND, A100),
        run(tmp_path, "b", BOUND, H200, "ampere_sgemm_128x64_tn"),
    )
    assert found["tensor_cores_unused"].share > 0.3
    assert "tf32 (tensor)" in found["tensor_cores_unused"].because


def test_libraries_that_are_older_than_the_device(tmp_path):
    old = {**H200, "computeMajor": 9, "computeMinor": 0}
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", BOUND, old, cuda_runtime_version=11070))
    assert found["old_libraries"].because == "CUDA 11.7 is older than the device, which CUDA 11.8 was the first to know"


def test_other_kernels_for_the_same_operator(tmp_path):
    other = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x8"
    found = remainder(run(tmp_path, "a", BOUND, A100), run(tmp_path, "b", BOUND, H200, other))
    assert found["other_kernels"].share > 0.3
    assert "tilesize64x64x8" in found["other_kernels"].because


def test_what_nothing_names_stays_unexplained(tmp_path):
    """The same kernels take as long on the faster device, and nothing in the recording says why."""
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


def test_a_throttled_device_is_named_by_its_own_diagnosis(tmp_path):
    a, b = run(tmp_path, "a", BOUND, A100), judged(tmp_path, BOUND, device=H200, unit_us=1000)
    b.report.findings.add(cause="thermal_throttle", regime="compute", cost_share=0.4)
    found = remainder(a, b)
    assert found["thermal_throttle"].share > 0.3
