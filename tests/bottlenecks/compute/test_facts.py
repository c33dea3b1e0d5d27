"""Products: fp32 on vector units is named if the device has matrix units, and never if they are already in use."""

import json

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

FP32 = "ampere_sgemm_128x64_tn"
BF16 = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
ODD = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"


def busy(tmp_path, *kernels, device="NVIDIA A100-SXM4-80GB", operator="aten::mm", dims=((4096, 4096), (4096, 4096))):
    """Four steps of 10 ms, each full of the kernels, every one launched inside its operator."""
    types = ["float"] * len(dims)
    shapes = {"Input Dims": dims, "Input type": types, "Concrete Inputs": [""] * len(dims)} if dims else {}
    events = []
    for number in range(40):
        ts, name = number * 1000, kernels[number % len(kernels)]
        row = {"ph": "X", "pid": 1, "tid": 1}
        if number % 10 == 0:
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{number // 10}", "ts": ts, "dur": 10_000}
            events.append(row | mark)
        link = {"correlation": number + 1, "device": 0, "stream": 7, "grid": [1024, 1, 1]}
        events.append(row | {"cat": "cpu_op", "name": operator, "ts": ts + 1, "dur": 20, "args": shapes})
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 5, "dur": 3, "args": link}
        events.append(row | call)
        kernel = {"cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts + 12, "dur": 995, "args": link}
        events.append(row | kernel)
    header = {"deviceProperties": [{"id": 0, "name": device, "numSms": 108}], "record_shapes": 1}
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(header | {"traceEvents": events}))
    return str(path)


def causes(path):
    return [finding.cause for finding in diagnose(path).findings]


def test_full_precision_beside_idle_matrix_units_is_the_answer(tmp_path):
    report = diagnose(busy(tmp_path, FP32))
    assert report.verdict.regime == "compute"
    assert report.verdict.headline.startswith("The GPU multiplies in fp32 for ")
    assert report.findings[0].cause == "fp32_matmul"


@pytest.mark.parametrize(
    ("kernels", "device"),
    [
        ((BF16,), "NVIDIA A100-SXM4-80GB"),
        ((BF16, BF16, FP32), "NVIDIA A100-SXM4-80GB"),  # mixed precision leaves some products in fp32
        ((FP32,), "NVIDIA GeForce GTX 1080 Ti"),  # no matrix units
        (("Cijk_Ailk_Bljk_BBS_BH_Bias_MT128x128x64_MI16x16x1",), "AMD Instinct MI300X"),
        (("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",), "NVIDIA B200"),
    ],
)
def test_mixed_precision_is_never_advised_where_it_is_on_or_cannot_be(tmp_path, kernels, device):
    assert "fp32_matmul" not in causes(busy(tmp_path, *kernels, device=device))


def test_kernels_for_odd_shapes_are_named(tmp_path):
    report = diagnose(busy(tmp_path, ODD))
    assert report.findings[0].cause == "misaligned_shapes"
    assert any("align1" in row.text for row in report.findings[0].evidence)


def recording(path):
    trace = load(path)
    return Recording(trace, find_steps(trace))


def test_a_product_of_thin_matrices_is_bound_by_bandwidth_whatever_its_name_says(tmp_path):
    """1 x 8192 times 8192 x 8192 reads 268 MB for 134 MFLOP: 0.13 ms of bandwidth, 0.007 ms of fp32 arithmetic."""
    thin = recording(busy(tmp_path, FP32, dims=((1, 8192), (8192, 8192))))
    assert set(thin.kernel_bounds.bound_by.tolist()) == {BoundBy.MEMORY}
    assert thin.account.share("memory") > 0.9
    square = recording(busy(tmp_path, FP32, dims=((2048, 2048), (2048, 2048))))
    assert set(square.kernel_bounds.bound_by.tolist()) == {BoundBy.COMPUTE}
    assert square.kernel_bounds.reached.tolist() == pytest.approx([0.885] * 40, abs=0.003)  # 17.2 GFLOP at 19.5 TFLOP/s


def test_an_impossible_amount_of_work_belongs_to_another_kernel(tmp_path):
    """2 x 4096^3 operations at 19.5 TFLOP/s take 7 ms, seven times as long as the kernel ran."""
    found = recording(busy(tmp_path, FP32))
    assert set(found.kernel_bounds.bound_by.tolist()) == {BoundBy.UNKNOWN}


def test_a_pointwise_kernel_is_compared_with_the_bandwidth(tmp_path):
    """Adding 2 x 64 Mi floats into a third moves 805 MB: 395 us at 2039 GB/s, of 995 us taken."""
    size = (64 * 1024 * 1024,)
    found = recording(busy(tmp_path, POINTWISE, operator="aten::add", dims=(size, size)))
    assert set(found.kernel_bounds.bound_by.tolist()) == {BoundBy.MEMORY}
    assert found.kernel_bounds.reached.tolist() == pytest.approx([0.397] * 40, abs=0.003)


def test_without_shapes_the_kind_of_work_decides_at_low_confidence(tmp_path):
    report = diagnose(busy(tmp_path, BF16, dims=()))
    assert (report.verdict.regime, report.verdict.confidence) == ("compute", "low")
    because = next(row.because for row in report.regimes if row.regime == "compute")
    assert "record_shapes=True" in because
