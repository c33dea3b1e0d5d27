"""Tests MFU and HFU against known operations, and the use of the device as torch-tb-profiler defines it.

The formulas of nanoGPT and torchtitan are applied to the same run. Tokens and goodput of a trace are tested, too.
"""

import json
from pathlib import Path

import pytest
from helpers.draw import drawn_trace
from helpers.drawn_gpt import Gpt

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.measures.efficiency.contractions import Part, contractions
from tb_bottleneck.measures.efficiency.trace_figures import goodput_of_trace, tokens_per_step
from tb_bottleneck.measures.efficiency.utilisation import tensor_share, utilisation
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

DOCS = Path(__file__).parents[3] / "tb_bottleneck" / "docs" / "efficiency.md"
A100_BF16, B200_FP8, B200_BF16 = 312e12, 4500e12, 2250e12


def recorded(tmp_path, gpt):
    trace = load(gpt.write(tmp_path))
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def figures(tmp_path, gpt):
    return utilisation(recorded(tmp_path, gpt)).figures


def forward_of(gpt):
    products = 2 * gpt.tokens * (gpt.layers * gpt.block_weights + gpt.vocabulary * gpt.width)
    return products + gpt.layers * gpt.attention_flops / 2  # causal


def test_the_operations_are_those_of_the_model(tmp_path):
    gpt = Gpt()
    found = figures(tmp_path, gpt)
    assert found["model_flops_per_step"].value == pytest.approx(3 * forward_of(gpt))
    assert found["peak_flops"].value == pytest.approx(A100_BF16)
    assert found["mfu"].value == pytest.approx(3 * forward_of(gpt) / (gpt.step_us / 1e6 * A100_BF16), rel=0.01)
    repeated = gpt.layers * gpt.attention_flops / 2 / 2  # flash attention computes the scores again
    model = 3 * forward_of(gpt)
    assert found["hfu"].value / found["mfu"].value == pytest.approx((model + repeated) / model)


def nanogpt(gpt):
    """model.py, estimate_mfu: 6 N + 12 L H Q T per token; N without the position embedding."""
    n = gpt.parameters - gpt.length * gpt.width
    return gpt.tokens * (6 * n + 12 * gpt.layers * gpt.heads * (gpt.width // gpt.heads) * gpt.length)


def torchtitan(gpt):
    """get_dense_model_nparams_and_flops: the same with N without all embeddings."""
    n = gpt.parameters - gpt.length * gpt.width - gpt.vocabulary * gpt.width
    return gpt.tokens * (6 * n + 12 * gpt.layers * gpt.heads * (gpt.width // gpt.heads) * gpt.length)


def test_the_formulas_of_nanogpt_and_torchtitan_differ_for_known_reasons(tmp_path):
    gpt = Gpt()
    ours = figures(tmp_path, gpt)["model_flops_per_step"].value
    masked = 3 * gpt.layers * gpt.attention_flops / 2
    d = gpt.width
    vectors = gpt.layers * (9 * d + 4 * d) + 2 * d  # biases and layer norms
    head = 6 * gpt.tokens * gpt.vocabulary * d  # tied to the embedding, which torchtitan leaves out
    assert nanogpt(gpt) - ours == pytest.approx(masked + 6 * gpt.tokens * vectors)
    assert torchtitan(gpt) - ours == pytest.approx(masked + 6 * gpt.tokens * vectors - head)
    # As a real run of this model with torch 2.13 on a CPU counted.
    assert (ours, nanogpt(gpt), torchtitan(gpt)) == (21_705_523_200, 22_595_764_224, 21_022_900_224)
    page = DOCS.read_text(encoding="utf-8")
    assert all(f"{figure:,.0f}" in page for figure in (ours, nanogpt(gpt), torchtitan(gpt), masked, head))


def test_checkpointing_runs_more_but_needs_no_more(tmp_path):
    plain, again = Gpt(), Gpt(checkpoint=True)
    recording = recorded(tmp_path, again)
    found = utilisation(recording).figures
    assert found["model_flops_per_step"].value == pytest.approx(3 * forward_of(plain))
    blocks = forward_of(plain) - 2 * plain.tokens * plain.vocabulary * plain.width
    table = contractions(recording)
    recomputed = table.flops[table.part == Part.RECOMPUTED].sum() / len(recording.steps)
    assert recomputed == pytest.approx(blocks)
    assert found["hfu"].value > 1.25 * found["mfu"].value


def test_frozen_weights_need_one_gradient(tmp_path):
    gpt = Gpt(frozen=True)
    head, attention = 2 * gpt.tokens * gpt.vocabulary * gpt.width, gpt.layers * gpt.attention_flops / 2
    linear = forward_of(gpt) - head - attention
    assert figures(tmp_path, gpt)["model_flops_per_step"].value == pytest.approx(2 * linear + 3 * (head + attention))


def test_an_inference_needs_the_forward_pass(tmp_path):
    gpt = Gpt(trained=False)
    found = figures(tmp_path, gpt)
    assert found["model_flops_per_step"].value == pytest.approx(forward_of(gpt))
    assert (found["mfu"].text, found["hfu"].value) == ("forward_only", pytest.approx(found["mfu"].value))


def test_each_type_has_its_own_peak(tmp_path):
    """Attention stays in bf16 where the products are in fp8."""
    gpt = Gpt(kernel="nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT", operand="c10::Float8_e4m3fn", device="NVIDIA B200")
    used = utilisation(recorded(tmp_path, gpt))
    assert [(one.dtype, one.peak) for one in used.types] == [
        ("fp8", pytest.approx(B200_FP8)),
        ("bf16", pytest.approx(B200_BF16)),
    ]
    attention = 3 * gpt.layers * gpt.attention_flops / 2
    ideal = (3 * forward_of(gpt) - attention) / B200_FP8 + attention / B200_BF16
    assert used.figures["mfu"].value == pytest.approx(ideal / (gpt.step_us / 1e6), rel=0.01)


def test_fp4_has_the_peak_of_fp4_or_none(tmp_path):
    kernel = "cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16"
    gpt = Gpt(kernel=kernel, device="NVIDIA B200", trained=False)
    assert utilisation(recorded(tmp_path, gpt)).types[0].peak == pytest.approx(9000e12)
    gpt = Gpt(kernel=kernel, device="NVIDIA H100 80GB HBM3", trained=False)
    assert figures(tmp_path, gpt)["mfu"].text == "no_peak_of_type"


@pytest.mark.parametrize(
    ("gpt", "because"),
    [
        (Gpt(device="NVIDIA X999"), "no_peak"),
        (Gpt(device="NVIDIA A100-SXM4-80GB MIG 1g.10gb"), "no_peak"),
        (Gpt(shapes=False), "no_shapes"),
        (Gpt(step_us=15_000, batch=100_000), "impossible"),
        (Gpt(device="Tesla V100-SXM2-16GB", kernel="volta_dgemm_64x64_nn", operand="double"), "no_peak_of_type"),
    ],
)
def test_what_is_not_known_is_absent_with_its_reason(tmp_path, gpt, because):
    found = figures(tmp_path, gpt)
    assert {figure.text for figure in found.values()} == {because}
    assert {figure.value for figure in found.values()} == {None}


def test_a_backward_pass_without_shapes_counts_twice_the_forward_pass(tmp_path):
    gpt = Gpt(shapes_of_backward=False)
    found = figures(tmp_path, gpt)
    assert found["model_flops_per_step"].value == pytest.approx(3 * forward_of(gpt))
    assert (found["mfu"].text, found["hfu"].text) == ("gradients_assumed", "backward_unknown")


@pytest.mark.parametrize(("length", "because"), [(900, ("unknown_work",) * 2), (20, ("forward_only", "all_seen"))])
def test_a_kernel_without_an_operator_makes_the_share_unknown(tmp_path, length, because):
    """Unless it is short beside the known ones."""
    gpt = Gpt(trained=False)
    trace = gpt.trace()
    extra = {"ph": "X", "cat": "kernel", "name": gpt.kernel, "pid": 0, "tid": 7, "ts": 39_000, "dur": length}
    trace["traceEvents"].append(extra | {"args": {"device": 0, "stream": 7, "correlation": 0}})
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(trace))
    loaded = load(str(path))
    steps = find_steps(loaded)
    assert steps is not None
    found = utilisation(Recording(loaded, steps)).figures
    assert (found["mfu"].text, found["hfu"].text) == because


def test_single_precision_on_an_unknown_unit_has_the_peak_of_tf32(tmp_path):
    """cutlass attention in fp32 splits its products: the utilisation must not be too high."""
    gpt = Gpt(kernel="unnamed_gemm_kernel", operand="float", trained=False, layers=0)
    assert [(one.dtype, one.peak) for one in utilisation(recorded(tmp_path, gpt)).types] == [
        ("tf32", pytest.approx(156e12))
    ]


PRODUCTS_OF_A_STEP = 4 * 5 + 1  # of the forward pass, with attention
KERNEL_US = 40


def recording_of(trace):
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


@pytest.fixture(scope="module")
def inference(tmp_path_factory):
    return recording_of(load(Gpt(trained=False).write(tmp_path_factory.mktemp("gpt"))))


def test_tensor_cores_do_all_products_in_bf16(inference):
    assert tensor_share(inference).value == 1.0


def test_the_share_of_tensor_cores_is_of_time():
    trace = drawn_trace(
        """
        step    aaaaaaaaaabbbbbbbbbb
        op      ##........##........
        gpu     .aaaa......aaaa.....
        stream  .....aaaa......aaaa.
        """
    )
    assert tensor_share(recording_of(trace)).value == pytest.approx(0.5)


def test_a_run_on_the_cpu_has_none_of_them():
    trace = drawn_trace("step aaaaabbbbb\nop   ####.####.")
    assert tensor_share(recording_of(trace)).text == "on_cpu"


def test_tokens_are_what_the_first_embedding_looks_up(inference):
    """Positions are looked up in a table of another size."""
    assert tokens_per_step(inference).value == Gpt().tokens


def test_a_model_without_attention_has_no_tokens():
    assert tokens_per_step(recording_of(drawn_trace("step aaaaabbbbb\nop   ####.####."))).text == "no_attention"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [("aaaaabbbbbcccccddddd", 1.0), ("aaaaabbbbbcccccdddddddddd", 0.8), ("aaaaabbbbb", None)],
)
def test_goodput_is_the_share_of_median_steps(steps, expected):
    found = goodput_of_trace(recording_of(drawn_trace(f"step {steps}\nop   {'#' * (len(steps) - 1)}.")))
    assert found.value == (None if expected is None else pytest.approx(expected))
