"""Points below the roofs, computed by hand for a drawn product of known shape, and the problem if there are none."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.__main__ import argument_parser
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.roofline_chart import roofline_of
from tb_bottleneck.trace.trace import load

# In each of two steps of a millisecond one product, of 400 us.
PRODUCTS = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ##........##........
    launch  |.........|.........
    gpu     ..####......####....
"""
KERNEL = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x3_nn_align8"
ROWS, INNER, COLUMNS = 4096, 4096, 1024
FLOPS = 2 * ROWS * INNER * COLUMNS
BYTES = 2 * (ROWS * INNER + INNER * COLUMNS + ROWS * COLUMNS)


@pytest.fixture
def roofline(tmp_path):
    def of(drawing=PRODUCTS, rows=ROWS, operand="c10::BFloat16", **header):
        trace = drawn(drawing, **header)
        shapes = {"Input Dims": [[rows, INNER], [INNER, COLUMNS]], "Input type": [operand] * 2}
        for event in trace["traceEvents"]:
            if event["cat"] == "cpu_op":
                event["name"], event["args"] = "aten::mm", shapes
            elif event["cat"] == "kernel":
                event["name"] = KERNEL
        path = tmp_path / "drawn.pt.trace.json"
        path.write_text(json.dumps(trace))
        recording = InspectedTrace(load(str(path))).recording
        return roofline_of(recording, recording.steps.end - recording.steps.begin)

    return of


def test_an_operator_of_one_shape_is_one_point(roofline):
    (point,) = roofline().points
    assert (point.name, point.shapes, point.precision) == ("aten::mm", "[4096, 4096], [4096, 1024]", "bf16 tensor")
    assert (point.calls, point.total_ns, point.share) == (2, 800_000, 0.4)
    assert point.intensity == pytest.approx(FLOPS / BYTES)
    assert point.flops_per_s == pytest.approx(FLOPS / 400e-6)


def test_only_roofs_that_something_ran_under_are_drawn(roofline):
    chart = roofline()
    assert [roof.precision for roof in chart.roofs] == ["bf16 tensor"]
    assert chart.points[0].flops_per_s < chart.roofs[0].flops_per_s < 312e12
    assert (chart.bandwidth, chart.basis) == (2039e9, "data sheet, matrix units at 87 % of it")


def test_an_impossible_rate_is_no_point(roofline):
    """Some recordings link kernels to the wrong operators."""
    chart = roofline(rows=64 * ROWS)
    assert not chart.points
    assert chart.problem.startswith("No operator in the window")


def test_without_peaks_there_is_no_roof(roofline):
    chart = roofline(deviceProperties=[{"id": 0, "name": "Somebody's own", "numSms": 8}])
    assert not chart.roofs
    assert chart.problem.startswith("The peaks of this device are not known.")
    argument_parser().parse_args(chart.fix.split()[1:])


ON_CPU = "\n".join(PRODUCTS.splitlines()[:3])


def test_a_run_on_the_cpu_without_a_calibration_says_how_to_measure_it(roofline):
    chart = roofline(ON_CPU)
    assert chart.problem.startswith("The work ran on the CPU")
    assert chart.fix == "CUDA_VISIBLE_DEVICES=-1 tb-bottleneck doctor"


def test_a_run_on_the_cpu_is_compared_with_its_calibration(roofline):
    recorded = {"schema": 1, "context": {"calibration": {"fp32_flops": 500e12, "copy_bytes_per_s": 20e9}}}
    chart = roofline(ON_CPU, operand="float", deviceProperties=[], tb_bottleneck=recorded)
    (point,) = chart.points
    assert (point.name, point.precision, point.calls, point.total_ns) == ("aten::mm", "fp32 vector", 2, 400_000)
    assert point.flops_per_s == pytest.approx(FLOPS / 200e-6)
    assert [(roof.precision, roof.flops_per_s) for roof in chart.roofs] == [("fp32 vector", 500e12)]
    assert (chart.bandwidth, chart.basis) == (20e9, "calibration")
    assert roofline(ON_CPU, deviceProperties=[], tb_bottleneck=recorded).problem.startswith("No operator")


def is_list(dims):
    return any(isinstance(size, list) for size in dims)


@pytest.mark.parametrize(
    ("operator", "shapes", "bytes_moved", "operations"),
    [
        ("aten::add", [[4096, 1024], [4096, 1024]], 3 * 4 * 4096 * 1024, 4096 * 1024),
        ("aten::relu", [[4096, 1024]], 2 * 4 * 4096 * 1024, 4096 * 1024),
        ("aten::sum", [[4096, 1024]], 4 * 4096 * 1024 + 4, 4096 * 1024),
        ("aten::cat", [[[2048, 1024], [2048, 1024]], []], 2 * 4 * 4096 * 1024, 4096 * 1024),
    ],
)
def test_pointwise_operators_and_reductions_are_points_at_their_intensity(
    tmp_path, operator, shapes, bytes_moved, operations
):
    """A run limited by memory had no point for the work that limits it."""
    trace = drawn(PRODUCTS)
    for event in trace["traceEvents"]:
        if event["cat"] == "cpu_op":
            event["name"] = operator
            types, concrete = ["TensorList" if is_list(dims) else "float" for dims in shapes], [""] * len(shapes)
            event["args"] = {"Input Dims": shapes, "Input type": types, "Concrete Inputs": concrete}
        elif event["cat"] == "kernel":
            event["name"] = (
                "CatArrayBatchedCopy<OpaqueType<4u>>" if "cat" in operator else "vectorized_elementwise_kernel"
            )
    path = tmp_path / "drawn.pt.trace.json"
    path.write_text(json.dumps(trace))
    recording = InspectedTrace(load(str(path))).recording
    (point,) = roofline_of(recording, recording.steps.end - recording.steps.begin).points
    assert (point.name, point.precision) == (operator, "fp32 vector")
    assert point.intensity == pytest.approx(operations / bytes_moved, rel=0.01)
    assert point.flops_per_s == pytest.approx(operations / 400e-6)
