"""Convolutions in NCHW on matrix units: the kernels by their names, and the gain without conversions."""

import json

import pytest
from helpers import draw
from helpers.drawn_graphs import UNIT_NS, drawn_graph

from tb_bottleneck.bottlenecks.memory import fixes, layout
from tb_bottleneck.bottlenecks.memory.fixes import CHANNELS_LAST
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.replay.modified_graph import Estimate

CONVERSIONS = [
    "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true, 0>",
    "void cudnn::engines_precompiled::nhwcToNchwKernel<__half, __half, float, true, false, 0>",
    "void nchwToNhwcKernel<__half, __half, float, true, false>(int, int)",
]
NORMS = [
    "void at::native::batch_norm_collect_statistics_kernel<at::native::Var, c10::BFloat16, c10::BFloat16, float, int>",
    "void at::native::batch_norm_transform_input_kernel<c10::BFloat16, float, float, true, int>",
    "void at::native::batch_norm_backward_kernel<c10::BFloat16, float, float, int>",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<__half, float, int, 512, true, 1, true>",
]
OTHERS = [
    "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var, c10::Half, float, 4>",
    "void cudnn::bn_fw_tr_1C11_singleread_NHWC<__half, float>",
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
]


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_conversion_is_known_by_its_name(name: str) -> None:
    assert layout.is_conversion(name)
    assert not layout.is_norm_in_nchw(name)


@pytest.mark.parametrize("name", NORMS)
def test_batch_norm_in_nchw_is_known_by_its_name(name: str) -> None:
    assert layout.is_norm_in_nchw(name)


@pytest.mark.parametrize("name", OTHERS)
def test_other_kernels_are_neither(name: str) -> None:
    assert not layout.is_conversion(name)
    assert not layout.is_norm_in_nchw(name)


# Per step of ten columns, two of conversions ("stream") and five of batch norm ("gpu") follow each other.
DRAWN = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  ||........||........
    stream  .##........##.......
    gpu     ...#####.....#####..
"""


def test_conversions_go_and_a_part_of_batch_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = drawn_graph(DRAWN)
    assert CHANNELS_LAST.apply(graph, Estimate.EXPECTED) is None, "no kernel converts the layout"
    monkeypatch.setattr(fixes, "is_conversion", lambda name: "elementwise" in name)
    monkeypatch.setattr(fixes, "is_norm_in_nchw", lambda name: "gemm" in name)
    lengths = {each: int(CHANNELS_LAST.apply(graph, each).items.length.sum()) for each in Estimate}
    columns = {each: length / UNIT_NS / 2 for each, length in lengths.items()}
    assert columns[Estimate.EXPECTED] == pytest.approx(5 * layout.NORM_LEFT, abs=0.01)
    assert columns[Estimate.LOW] == pytest.approx(2 * 0.5 + 5 * 0.9, abs=0.01)
    assert columns[Estimate.HIGH] == pytest.approx(5 * 0.45, abs=0.01)


BF16, FP32 = (
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
    "ampere_sgemm_128x64",
)
STEP = "".join(letter * 20 for letter in "abcd")
# Convolutions are "gpu", conversions "stream", batch norm "norm".
CONVOLUTIONS = {"gpu": "#######.............", "stream": ".......####.........", "norm": "...........#########"}


@pytest.mark.parametrize(
    ("convolution", "conversion", "norm", "rows", "found"),
    [
        (BF16, CONVERSIONS[0], NORMS[0], CONVOLUTIONS, True),
        (BF16.replace("bf16", "f16"), CONVERSIONS[1], OTHERS[3], CONVOLUTIONS, True),
        (BF16.replace("bf16bf16_bf16f32", "tf32f32_f32"), CONVERSIONS[2], NORMS[3], CONVOLUTIONS, True),
        (FP32, OTHERS[3], NORMS[2], CONVOLUTIONS, False),
        (BF16, OTHERS[3], OTHERS[0], CONVOLUTIONS, False),
        (
            BF16,
            CONVERSIONS[0],
            NORMS[0],
            {"gpu": "#" * 18 + "..", "stream": "." * 18 + "#.", "norm": "." * 19 + "#"},
            False,
        ),
    ],
    ids=["bf16", "fp16 without norms", "tf32", "32 bits without matrix units", "channels_last", "mostly convolutions"],
)
def test_only_conversions_that_cost_time_are_a_cause(tmp_path, monkeypatch, convolution, conversion, norm, rows, found):
    for row, name in (("gpu", convolution), ("stream", conversion), ("norm", norm)):
        monkeypatch.setitem(draw.DEVICE_ROWS, row, ("kernel", name, 7, [1024, 1, 1]))
    drawing = "\n".join(
        [f"step {STEP}", f"launch {'|||.................' * 4}", *(f"{k} {v * 4}" for k, v in rows.items())]
    )
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps(draw.drawn(drawing, 50.0)))
    findings = {each.cause: each for each in diagnose(str(path)).findings}
    assert ("memory_format" in findings) == found
    if found:
        assert findings["memory_format"].speedup.expected > 1.05
        assert "channels_last" in findings["memory_format"].fix.code
