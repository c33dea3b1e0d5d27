"""Kernels of the program itself are told from those of torch and its libraries."""

import json

import pytest
from helpers import draw

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.own_kernels import is_own, own_kernel_name, own_kernel_reach, own_kernel_share
from tb_bottleneck.text.sections import headroom_lines
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

# From public recordings.
OWN = ["liger_cross_entropy_kernel", "rotary_kernel", "_copy_tensor_kernel", "_rms_norm_fwd_fused"]
OTHERS = [
    "triton_poi_fused_gelu_view_9",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128>(cutlass_80::Params)",
    "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x64x128",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32",
    "batched_transpose_32x32_half",
    "fused__autocast_to__16747471071299466860",
    "attn_fwd",
    "",
]
DRAWING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##...####.##...####.##...####.
    gpu     ..aabb......aabb......aabb....
    stream  ......ccdd......ccdd......ccdd
"""


@pytest.mark.parametrize(("name", "own"), [*((name, True) for name in OWN), *((name, False) for name in OTHERS)])
def test_kernels_by_name(name, own):
    assert is_own(name) == own


def recorded(tmp_path, monkeypatch, name="rotary_kernel", call="cuLaunchKernelEx", dims=None):
    """Returns the path of a trace whose kernels of the row "stream" have this name and call."""
    monkeypatch.setitem(draw.DEVICE_ROWS, "stream", ("kernel", name, 7, [1024, 1, 1]))
    trace = draw.drawn(DRAWING)
    theirs = {event["args"]["correlation"] for event in trace["traceEvents"] if event["name"] == name}
    for event in trace["traceEvents"]:
        if event["cat"] == "cuda_runtime" and event["args"].get("correlation") in theirs:
            event["name"] = call
        elif event["cat"] == "cpu_op" and dims:
            event["args"] = {"Input Dims": dims, "Input type": ["float", "float"]}
            event["name"] = "aten::mul"
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps(trace))
    return str(path)


def recording_of(path):
    trace = load(path)
    return Recording(trace, find_steps(trace))


def test_own_kernels_have_a_share_and_a_name(tmp_path, monkeypatch):
    recording = recording_of(recorded(tmp_path, monkeypatch))
    assert own_kernel_share(recording).value == pytest.approx(0.4, abs=0.03)
    assert own_kernel_name(recording).text == "rotary_kernel"
    assert isinstance(own_kernel_reach(recording), Missing)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("rotary_kernel", "cudaLaunchKernel"),
        ("nvjet_tst_128x256", "cuLaunchKernelEx"),
        ("a::kernel<4>", "cuLaunchKernel"),
    ],
    ids=["of a library by its call", "of a library by its name", "of C++"],
)
def test_other_kernels_are_not_the_programs(tmp_path, monkeypatch, name, call):
    recording = recording_of(recorded(tmp_path, monkeypatch, name, call))
    assert isinstance(own_kernel_share(recording), Missing)
    assert "own_kernels" not in [entry.kind for entry in diagnose(recorded(tmp_path, monkeypatch, name, call)).headroom]


def test_recorded_shapes_give_the_distance_from_the_roof(tmp_path, monkeypatch):
    """192 MB of an A100 with 80 GB, at 2.04 TB/s, in two kernels of 0.2 ms."""
    recording = recording_of(recorded(tmp_path, monkeypatch, dims=[[4096, 4096], [4096, 4096]]))
    assert own_kernel_reach(recording).value == pytest.approx(3 * 2**26 / 2.04e12 / 0.4e-3, rel=0.1)


def test_the_report_says_what_to_look_at(tmp_path, monkeypatch):
    report = diagnose(recorded(tmp_path, monkeypatch))
    (entry,) = (entry for entry in report.headroom if entry.kind == "own_kernels")
    assert "asm['ptx']" in entry.summary
    text = " ".join(str(part) for part in headroom_lines(report.headroom))
    assert "rotary_kernel" in text
