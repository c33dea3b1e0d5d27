"""Products in another type: gains on what is wider, nothing on what is not, and refusals where it cannot be."""

import json

import numpy as np
import pytest
from comparison.drawn_runs import A100, V100, judged, repeated
from helpers.draw import drawn

from tb_bottleneck.bottlenecks.compute.product_precision import AUTOCAST_BYTES, CAST_OVERHEAD
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.hardware import change_device, device_pair_to
from tb_bottleneck.comparison.what_if.precision import change_precision
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.scenario import CannotPredict
from tb_bottleneck.roofline.kernel_bounds import BoundBy, KernelBounds
from tb_bottleneck.trace.device_ops import Work

DRAWING = repeated(9, op="##.....", gpu="..##...", stream="....##.")


def run(tmp_path, device=A100, kernel="ampere_sgemm_128x64_tn", unit_us=100):
    """The drawing with its products by this kernel."""
    text = json.dumps(drawn(DRAWING, unit_us, deviceProperties=[device]))
    path = tmp_path / "run.pt.trace.json"
    path.write_text(text.replace("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", kernel))
    return judge_run("run", [str(path)]).recording


def test_fp32_products_gain_much_and_what_lies_between_them_a_little(tmp_path):
    recording = run(tmp_path)
    found = change_precision(recording, "bf16").factors(Estimate.EXPECTED)
    product, stream = sorted(set(np.round(found, 6)))
    assert product == pytest.approx(1.04 / (312 * 0.87 / 19.5) ** 0.69, rel=1e-4), "no shapes: as measured"
    assert stream == AUTOCAST_BYTES[Estimate.EXPECTED]


def test_tf32_moves_as_many_bytes(tmp_path):
    assert 1.0 in change_precision(run(tmp_path), "tf32").factors(Estimate.EXPECTED)


def test_the_best_case_is_better_than_the_worst(tmp_path):
    change = change_precision(run(tmp_path), "bf16")
    assert (change.factors(Estimate.HIGH) < change.factors(Estimate.LOW)).all()


def test_autocast_takes_time_of_the_host_for_each_product(tmp_path):
    """Half of the operations are products. The time has a limit, since casts run without Python."""
    for unit_us, part in ((5, 0.7), (100, 30 / 350)):
        graph = unmodified_graph(RecordedGraph(run(tmp_path, unit_us=unit_us)))
        change = change_precision(graph.base.recording, "bf16")
        longer = [change.apply(graph, each).host_step() for each in (Estimate.HIGH, Estimate.EXPECTED, Estimate.LOW)]
        assert np.array(longer) / graph.host_step() == pytest.approx([1.0, 1 + part / 2, 1 + part], rel=0.05)
        to_tf32 = change_precision(graph.base.recording, "tf32").apply(graph, Estimate.LOW)
        assert to_tf32.host_step() == graph.host_step()


def test_what_runs_in_the_type_already_gains_nothing(tmp_path):
    recording = run(tmp_path, kernel="ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn")
    with pytest.raises(CannotPredict, match=r"slower than bf16\. They run in bf16 \(tensor\): 100 %"):
        change_precision(recording, "bf16")


def test_a_product_of_unknown_type_is_not_counted_as_fp32(tmp_path):
    """A kernel with an unknown name, in a bf16 training, was predicted to be 1.6 times as fast in bf16."""
    with pytest.raises(CannotPredict, match="slower than bf16"):
        change_precision(run(tmp_path, kernel="acme_gemm_tn_v3"), "bf16")


@pytest.mark.parametrize(("operands", "gains"), [("c10::BFloat16", False), ("float", True)])
def test_where_the_name_is_silent_the_operands_tell(tmp_path, operands, gains):
    drawing = repeated(9, op="##..", launch="|...", gpu="..##")
    trace = drawn(drawing, deviceProperties=[A100])
    for event in trace["traceEvents"]:
        if event["cat"] == "cpu_op":
            event["args"] |= {"Input Dims": [[8, 8], [8, 8], []], "Input type": [operands, operands, ""]}
    path = tmp_path / "run.pt.trace.json"
    text = json.dumps(trace).replace("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", "acme_gemm_tn_v3")
    path.write_text(text)
    recording = judge_run("run", [str(path)]).recording
    if not gains:
        with pytest.raises(CannotPredict, match="slower than bf16"):
            change_precision(recording, "bf16")
        return
    product = change_precision(recording, "bf16").factors(Estimate.EXPECTED).min()
    assert product == pytest.approx(CAST_OVERHEAD[Estimate.EXPECTED] / 2**0.69, rel=1e-4), (
        "as if from TF32: the least there is"
    )


def test_on_another_device_it_is_that_device_s_bandwidth_that_bounds(tmp_path):
    """Products are predicted by the roofs of the new device.

    At 80 % of an A100's fp32 and 40 % of its bandwidth, on an H200 their bytes alone take a fifth of the time, and half
    as many bytes a tenth. Predicting both gains by the A100's roofs gave less than that.
    """
    recording = run(tmp_path)
    products = recording.trace.device_ops.work == Work.CONTRACTION
    bounds = KernelBounds(
        bound_by=np.where(products, BoundBy.COMPUTE, BoundBy.UNKNOWN).astype(np.int64),
        reached=np.where(products, 0.8, 0.0),
        other=np.where(products, 0.4, 0.0),
        small=np.zeros(len(products), np.bool_),
    )
    recording.__dict__["kernel_bounds"] = bounds
    move = device_pair_to(recording, "NVIDIA H200")
    both = change_device(recording, move).factors(Estimate.EXPECTED) * change_precision(
        recording, "bf16", move
    ).factors(Estimate.EXPECTED)
    assert both[products] == pytest.approx(0.4 / 0.8 * 0.5 * 2039 / 4800 * CAST_OVERHEAD[Estimate.EXPECTED])


def test_a_device_without_such_units_is_named(tmp_path):
    with pytest.raises(CannotPredict, match="Tesla V100-SXM2-32GB has no matrix units for bf16"):
        change_precision(judged(tmp_path, DRAWING, device=V100).recording, "bf16")
