"""Reachable rates of a device: measured, otherwise from its data sheet or properties; never impossible values."""

import json

import pytest

from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.roofline.device_peaks import (
    CALIBRATION,
    DATA_SHEET,
    PROPERTIES,
    has_matrix_units,
    has_tf32,
    peaks_of,
)
from tb_bottleneck.trace.trace import load

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0}
UNLISTED = {"id": 0, "name": "NVIDIA Unheard Of", "numSms": 100, "computeMajor": 9, "computeMinor": 0}
BF16, FP32 = Precision("tensor", "bf16"), Precision("vector", "fp32")
CLOCKS = {"sm_clock_hz": 1.8e9, "memory_clock_hz": 2.6e9, "memory_bus_bits": 5120}


def trace_of(tmp_path, device, **context):
    path = tmp_path / "p.pt.trace.json"
    header = {"deviceProperties": [device], "tb_bottleneck": {"context": context}}
    path.write_text(json.dumps(header | {"traceEvents": []}))
    return load(str(path))


def test_without_a_calibration_matrix_units_reach_what_the_best_known_product_reaches(tmp_path):
    peaks, gpu = peaks_of(trace_of(tmp_path, A100)), gpu_named(A100["name"])
    assert peaks.basis == DATA_SHEET
    assert peaks.of(BF16) == pytest.approx(gpu.tflops["bf16"] * gpu.achievable)
    assert peaks.of(FP32) == gpu.tflops["fp32"]
    assert peaks.bandwidth == gpu.bandwidth
    assert peaks.of(Precision("tensor", "fp4")) is None
    assert peaks.of(Precision("unknown", "fp32")) is None


def test_what_was_measured_on_the_device_comes_first(tmp_path):
    figures = {"bf16_flops": 255e12, "tf32_flops": 120e12, "fp32_flops": 18e12, "copy_bytes_per_s": 1.7e12}
    peaks = peaks_of(trace_of(tmp_path, A100, calibration=figures))
    assert peaks.basis == CALIBRATION
    assert peaks.of(BF16) == 255
    assert peaks.of(Precision("tensor", "fp16")) == 255  # the matrix units run both at one rate
    assert peaks.of(Precision("tensor", "tf32")) == 120
    assert peaks.of(FP32) == 18
    assert peaks.bandwidth == 1700


@pytest.mark.parametrize("bad", [0, -5, 1e30, float("nan"), "255e12", "much", True, None, [1], {"x": 1}, 10**400])
@pytest.mark.parametrize("key", ["bf16_flops", "fp32_flops", "copy_bytes_per_s"])
def test_figures_that_this_device_cannot_have_are_not_used(tmp_path, key, bad):
    path = tmp_path / "p.pt.trace.json"
    context = json.dumps({"calibration": {key: bad}})
    path.write_text(
        f'{{"deviceProperties": [{json.dumps(A100)}], "tb_bottleneck": {{"context": {context}}}, "traceEvents": []}}'
    )
    assert peaks_of(load(str(path))) == peaks_of(trace_of(tmp_path, A100))


@pytest.mark.parametrize("raw", ["fast", 7, [], None])
def test_an_invalid_calibration_is_ignored(tmp_path, raw):
    assert peaks_of(trace_of(tmp_path, A100, calibration=raw)).basis == DATA_SHEET


def test_a_device_outside_the_table_is_computed_from_its_properties_or_measured(tmp_path):
    assert peaks_of(trace_of(tmp_path, UNLISTED)) is None
    computed = peaks_of(trace_of(tmp_path, UNLISTED, **CLOCKS))
    assert computed.basis == PROPERTIES
    assert computed.of(BF16) == pytest.approx(100 * 2048 * 2 * 1.8e9 / 1e12)
    assert computed.bandwidth == pytest.approx(2.6e9 * 5120 / 8 * 2 / 1e9)
    figures = {"bf16_flops": 500e12, "copy_bytes_per_s": 3e12}
    measured = peaks_of(trace_of(tmp_path, UNLISTED, calibration=figures))
    assert (measured.basis, measured.of(BF16), measured.of(FP32), measured.bandwidth) == (CALIBRATION, 500, None, 3000)


@pytest.mark.parametrize(
    ("device", "matrix", "tf32"),
    [
        (A100, True, True),
        (UNLISTED, True, True),
        ({"id": 0, "name": "Tesla V100-SXM2-32GB"}, True, False),
        ({"id": 0, "name": "NVIDIA GeForce GTX 1660", "computeMajor": 7, "computeMinor": 5}, False, False),
        ({"id": 0, "name": "Tesla P40", "computeMajor": 6, "computeMinor": 1}, False, False),
        ({"id": 0, "name": "somebody's"}, None, False),
    ],
)
def test_which_devices_have_matrix_units(tmp_path, device, matrix, tf32):
    trace = trace_of(tmp_path, device)
    assert (has_matrix_units(trace), has_tf32(trace)) == (matrix, tf32)
