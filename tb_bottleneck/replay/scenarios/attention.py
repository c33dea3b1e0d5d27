"""The scenario of fused attention: scaled_dot_product_attention instead of single operators."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.knowledge.gpus import GIGA, TERA
from tb_bottleneck.measures.attention import AttentionWork, attention_work
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario, scaled_on_cpu
from tb_bottleneck.roofline.device_peaks import peaks_of

RATE_ON_CPU = {Estimate.EXPECTED: 1.0, Estimate.LOW: 0.6, Estimate.HIGH: 1.5}
"""Rate of the fused kernel / rate of the linear layers of the same recording. The expected value is from transformers
like those of ATTENTION.md (torch 2.13, AMD EPYC), where 8 of 9 gains are inside the bounds. The bounds are a
choice."""
RATE_ON_DEVICE = {Estimate.EXPECTED: 0.65, Estimate.LOW: 0.35, Estimate.HIGH: 0.95}
"""Rate of the fused kernel / rate of the linear layers, for operands of 16 bits. Twelve transformers on an H200 (torch
2.11, GPU.md) have 0.32 to 0.97, 0.63 in the median. FlashAttention-2 reaches 50 to 73 % of an A100's peak
forwards and 44 to 63 % backwards (arXiv 2307.08691, section 4.1), large products about 80 %."""
RATE_IN_SINGLE_PRECISION = {Estimate.EXPECTED: 0.55, Estimate.LOW: 0.45, Estimate.HIGH: 1.3}
"""Rate of the fused kernel / peak of 32-bit vector units, for operands of 32 bits: such a kernel multiplies each number
in three parts on matrix units, whether or not TF32 is allowed (CUTLASS, OpMultiplyAddFastF32). Six transformers on an
H200 have 0.49 to 0.67. High: half of a third of the TF32 peak, as on an A100, is a choice."""
DISPATCH_LEFT = 0.25
"""One call remains of at least four: a multiplication, a scaling, a softmax and a multiplication."""


def with_fused_attention(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Computes attention with one fused kernel, which does not write the attention scores to memory.

    Returns None if the recorded shapes do not give the rate of the linear layers, or if the operands have 32 bits and
    the peak of the device is not known.

    Changes: the operators of attention, forward and backward, take as long as their matrix multiplications alone, at
    most as long as recorded. The multiplications run at RATE_ON_DEVICE or RATE_ON_CPU times the rate of the linear
    layers in this recording. For operands of 32 bits on a device, they run at RATE_IN_SINGLE_PRECISION times the peak
    of its vector units, at most at the rate of the linear layers. On a device, DISPATCH_LEFT of the host's time for
    these operators remains.
    Assumes: scaled_dot_product_attention has a fused kernel for these shapes, types and masks.
    Bounds: the low and the high estimate use the corresponding values of these rates.
    """
    recording = graph.base.recording
    work = attention_work(recording)
    if work is None:
        return None
    if not recording.on_device:
        left = _left(work.flops / (RATE_ON_CPU[estimate] * work.linear_rate), work.spans.total())
        return scaled_on_cpu(graph, work.spans, left)
    ops = recording.trace.device_ops
    rate = _rate_on_device(recording, work, estimate)
    if rate is None:
        return None
    left = _left(work.flops / rate, float((ops.end - ops.start)[work.kernels].sum()))
    factors = np.where(work.kernels, left, 1.0)
    gap = graph.gap_scaled(Activity.DISPATCH, 1 - graph.gap_share_in(work.spans) * (1 - DISPATCH_LEFT))
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)), gap=gap)


def _rate_on_device(recording: Recording, work: AttentionWork, estimate: Estimate) -> float | None:
    """Returns the arithmetic rate of the fused kernel on a device in operations per ns; None if the operands have 32
    bits and the peak of the device is not known."""
    if not work.in_single_precision:
        return RATE_ON_DEVICE[estimate] * work.linear_rate
    peaks = peaks_of(recording.trace)
    if peaks is None or peaks.vector is None:
        return None
    return min(RATE_IN_SINGLE_PRECISION[estimate] * peaks.vector * TERA / GIGA, work.linear_rate)


def _left(fused: float, now: float) -> float:
    """Returns the share of the time `now` that the fused kernel takes, at most 1. Both times are in ns."""
    return min(fused / max(now, 1.0), 1.0)


FUSED_ATTENTION = Scenario("attention", with_fused_attention, on_cpu=True)
