"""The decision between the roofs, on kernels whose shares can be worked out by hand."""

import re
from dataclasses import replace

import pytest

from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.knowledge.precisions import Precision
from tb_bottleneck.roofline import operand_precision
from tb_bottleneck.roofline.operand_precision import IMPLAUSIBLE_FROM, Bound, bound_of, with_operand_type
from tb_bottleneck.roofline.underfilled import FILLED_SHARE, TOO_SHORT_NS

# 100 TFLOP/s of bf16, of which 80 can be reached; 1000 GB/s. In 1 ms: 80 GFLOP, 1 GB.
GPU = replace(gpu_named("NVIDIA H200"), tflops={"bf16": 100.0, "fp32": 10.0}, bandwidth=1000.0, achievable=0.8)
BF16 = Precision("tensor", "bf16")
MS = 1_000_000


@pytest.mark.parametrize(
    ("flops", "moved", "kind", "of_peak", "of_bandwidth"),
    [
        (72 * 10**9, 10**8, "compute", 0.9, 0.1),
        (48 * 10**9, 10**8, "compute", 0.6, 0.1),
        (47 * 10**9, 10**8, "neither", 0.5875, 0.1),
        (0, 6 * 10**8, "memory", 0.0, 0.6),
        (0, 5 * 10**8, "neither", 0.0, 0.5),
        (56 * 10**9, 9 * 10**8, "memory", 0.7, 0.9),
        (76 * 10**9, 7 * 10**8, "compute", 0.95, 0.7),
        (72 * 10**9, None, "compute", 0.9, None),
        (None, 9 * 10**8, "memory", None, 0.9),
        (160 * 10**9, 10**8, "compute", 2.0, 0.1),
    ],
)
def test_the_higher_roof_bounds(flops, moved, kind, of_peak, of_bandwidth):
    found = bound_of(flops, moved, MS, GPU, BF16, 132, 132)
    assert found.kind == kind
    assert found.because == ""
    assert found.of_peak == (None if of_peak is None else pytest.approx(of_peak))
    assert found.of_bandwidth == (None if of_bandwidth is None else pytest.approx(of_bandwidth))


def test_ordinary_units_are_held_against_their_own_whole_peak():
    found = bound_of(9 * 10**9, 10**8, MS, GPU, Precision("vector", "fp32"), 132, 132)
    assert found == Bound("compute", pytest.approx(0.9), pytest.approx(0.1))


@pytest.mark.parametrize(
    ("duration_ns", "blocks", "multiprocessors", "kind"),
    [
        (MS, 65, 132, "underfilled"),
        (MS, 66, 132, "memory"),
        (MS, 0, 132, "memory"),  # blocks not recorded
        (MS, 1, None, "memory"),
        (TOO_SHORT_NS, 132, 132, "memory"),
        (TOO_SHORT_NS - 1, 132, 132, "underfilled"),
    ],
)
def test_small_kernels_are_underfilled_whatever_they_reach(duration_ns, blocks, multiprocessors, kind):
    assert FILLED_SHARE * 132 == 66
    moved = int(0.9 * 1000 * duration_ns)
    assert bound_of(0, moved, duration_ns, GPU, None, blocks, multiprocessors).kind == kind


@pytest.mark.parametrize(
    ("flops", "moved", "duration_ns", "gpu", "precision", "because"),
    [
        (10**9, 10**8, MS, None, BF16, "device's peaks"),
        (None, None, MS, GPU, BF16, "work and traffic"),
        (None, 10**8, MS, GPU, BF16, "work is not known"),
        (10**9, None, MS, GPU, BF16, "traffic is not known"),
        (10**9, 10**8, MS, GPU, Precision("tensor", None), "peak for this kernel's type"),
        (10**9, 10**8, MS, GPU, Precision("tensor", "fp4"), "peak for this kernel's type"),
        (10**9, 10**8, MS, GPU, None, "peak for this kernel's type"),
        (10**9, 10**8, 0, GPU, BF16, "no duration"),
        (320 * 10**9, 10**8, MS, GPU, BF16, "another operator's"),
        (0, 4 * 10**9, MS, GPU, BF16, "another operator's"),
    ],
)
def test_nothing_is_said_without_the_signal(flops, moved, duration_ns, gpu, precision, because):
    found = bound_of(flops, moved, duration_ns, gpu, precision, 132, 132)
    assert found.kind is None
    assert because in found.because


def test_operands_complete_a_silent_name():
    silent = Precision("tensor", None)
    assert with_operand_type(silent, "c10::BFloat16") == BF16
    assert with_operand_type(silent, "c10::Half") == Precision("tensor", "fp16")
    assert with_operand_type(silent, "float") == silent  # fp32 or tf32
    assert with_operand_type(BF16, "float") == BF16
    assert with_operand_type(None, "c10::Half") is None


def test_the_thresholds_are_those_of_the_words():
    assert operand_precision.COMPUTE_BOUND_FROM == operand_precision.MEMORY_BOUND_FROM == 0.6
    assert IMPLAUSIBLE_FROM == 4
    named = set(re.findall(r"\b[A-Z]{3,}_[A-Z_]+\b", bound_of.__doc__))
    assert named == {"TOO_SHORT_NS", "FILLED_SHARE", "COMPUTE_BOUND_FROM", "MEMORY_BOUND_FROM", "IMPLAUSIBLE_FROM"}
