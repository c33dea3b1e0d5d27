"""Devices are found by the names that people type, and their rates compared fairly."""

import pytest
from comparison.drawn_runs import H200, context, judged, repeated

from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.devices.device_rates import (
    device_named,
    device_of,
    link_rate,
    speed_ratio,
    unknown_device_reason,
    with_article,
)
from tb_bottleneck.comparison.devices.expected_time import device_pair_of
from tb_bottleneck.comparison.devices.kernel_scaling import DevicePair
from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.knowledge.gpus import known_names

DRAWING = repeated(9, op="##..", gpu="..##")
BF16, FP32 = Precision("tensor", "bf16"), Precision("vector", "fp32")


@pytest.mark.parametrize("name", ["NVIDIA H200", "h200", "H200 SXM", "nvidia h200"])
def test_one_device_has_many_spellings(name):
    assert device_named(name).name == "H200 SXM"


def test_every_name_that_is_offered_is_known():
    assert [device_named(name).name for name in known_names()] == list(known_names())


def test_a_geforce_needs_no_maker_and_no_space():
    assert device_named("rtx4090").name == "GeForce RTX 4090"


def test_an_unknown_device_is_answered_with_near_ones():
    with pytest.raises(NotFound, match=r"did you mean .*A100"):
        device_named("A100")


@pytest.mark.parametrize(
    ("typed", "meant"), [("RTX 40900", "NVIDIA GeForce RTX 4090"), ("H20000", "NVIDIA H200"), ("b2000", "NVIDIA B200")]
)
def test_a_slip_of_the_finger_is_answered_with_what_was_meant(typed, meant):
    with pytest.raises(NotFound, match=f"did you mean {meant}"):
        device_named(typed)


@pytest.mark.parametrize("name", ["§§§§", "", "  "])
def test_nonsense_is_answered_with_a_way_to_say_it(name):
    with pytest.raises(NotFound, match="use the name that torch reports"):
        device_named(name)


def test_the_ratio_is_of_what_products_reach_where_that_is_known_of_both():
    a, b = device_named("NVIDIA A100-SXM4-80GB"), device_named("NVIDIA H100 80GB HBM3")
    assert speed_ratio(a, b, BF16) == pytest.approx(989 * 0.80 / (312 * 0.87))
    assert speed_ratio(a, b, FP32) == pytest.approx(67 / 19.5)


def test_a_type_that_the_other_device_lacks_runs_on_its_ordinary_units():
    a, b = device_named("NVIDIA A100-SXM4-80GB"), device_named("Tesla V100-SXM2-32GB")
    assert speed_ratio(a, b, BF16) == pytest.approx(15.7 / 312)


def test_what_is_not_known_is_no_number():
    a = device_named("NVIDIA A100-SXM4-80GB")
    assert speed_ratio(a, a, None) is None
    assert speed_ratio(a, a, Precision("tensor", None)) is None


def test_a_link_s_rate_is_what_a_copy_can_use():
    assert link_rate(4, 16) == pytest.approx(25.2, abs=0.1)
    assert link_rate(9, 16) is None


ACME = {"id": 0, "name": "NVIDIA RTX PRO 12345 Acme", "numSms": 100, "computeMajor": 9, "computeMinor": 0}
CLOCKS = {"sm_clock_hz": 2.0e9, "memory_clock_hz": 3.0e9, "memory_bus_bits": 512}


def test_a_device_outside_the_table_is_described_by_its_clocks(tmp_path):
    """100 multiprocessors x 2048 multiply-adds x 2 x 2 GHz, and 3 GHz x 64 bytes x 2: the monitor logs these."""
    trace = judged(tmp_path, DRAWING, device=ACME, tb_bottleneck=context(**CLOCKS)).recording.trace
    found = device_of(trace)
    assert found.tensor["bf16"] == pytest.approx(100 * 2048 * 2 * 2.0e9 / 1e12)
    assert found.bandwidth == pytest.approx(384)
    assert found.basis == "clocks and units"
    assert found.achievable is None, "it was not measured"


def test_such_a_device_gets_an_expected_time(tmp_path):
    a = judged(tmp_path, DRAWING, device=ACME, tb_bottleneck=context(**CLOCKS))
    result = compare_runs(a, judged(tmp_path, DRAWING, device=H200))
    assert result.expected.low < result.expected.speedup < result.expected.high
    because = next(row.because for row in result.expected.by_regime if row.regime == "memory")
    assert because == "device memory: 384 GB/s on A, 4,800 on B"


def test_a_measured_bandwidth_is_compared_with_what_copies_reach_of_a_sheet(tmp_path):
    """A calibrated device without a data sheet: a measured 2.0 TB/s is more than 2.0 TB/s in a data sheet."""
    facts = context(calibration={"copy_bytes_per_s": 2.0e12, "fp32_flops": 20e12})
    found = device_of(judged(tmp_path, DRAWING, device=ACME, tb_bottleneck=facts).recording.trace)
    assert found.basis == "measurement"
    assert DevicePair(found, device_named("H200")).bandwidth_ratio == pytest.approx(4800 * 0.88 / 2000)


def test_a_measured_and_an_unmeasured_device_are_compared_by_data_sheets(tmp_path):
    facts = context(calibration={"copy_bytes_per_s": 1.79e12, "tf32_flops": 120e12})
    runs = (
        judged(tmp_path, DRAWING, tb_bottleneck=facts).recording,
        judged(tmp_path, DRAWING, device=H200).recording,
    )
    move = device_pair_of(*runs)
    assert (move.a.bandwidth, move.b.bandwidth) == (2039, 4800)


def test_a_device_of_which_nothing_is_known_is_said_to_be_one(tmp_path):
    trace = judged(tmp_path, DRAWING, device=ACME).recording.trace
    assert device_of(trace) is None
    assert "The device 'NVIDIA RTX PRO 12345 Acme' is not listed" in unknown_device_reason(trace)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NVIDIA H200", "an"),
        ("H200 SXM", "an"),
        ("Tesla T4", "a"),
        ("V100", "a"),
        ("GeForce RTX 4090", "a"),
        ("A100", "an"),
    ],
)
def test_a_name_stands_in_a_sentence(name, said):
    assert with_article(name) == f"{said} {name}"


def test_a_calibrated_device_is_known_without_a_data_sheet():
    with pytest.raises(NotFound):
        device_named("NVIDIA Unlisted 9")
    calibrations.save(
        "NVIDIA Unlisted 9", "590.1", {"bf16_flops": 4e14, "fp32_flops": 4e13, "copy_bytes_per_s": 1.1e12}
    )
    device = device_named("NVIDIA Unlisted 9")
    assert (device.tensor["bf16"], device.vector, device.achievable) == (400, 40, 1)
    assert device.copy_bandwidth == pytest.approx(1100)
    h100 = device_named("H100 SXM")
    ratio = speed_ratio(device, h100, BF16)
    assert ratio == pytest.approx(h100.rate(BF16) * h100.achievable / 400), "reachable rates are compared"
