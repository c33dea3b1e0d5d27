"""The scenario of fused attention: scaled_dot_product_attention instead of single operators."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.measures.trace.products import attention_work
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario

RATE_ON_CPU = {Estimate.EXPECTED: 1.0, Estimate.LOW: 0.6, Estimate.HIGH: 1.5}
"""Rate of the fused kernel / rate of the linear layers of the same recording. The expected one is from transformers
like those of tests/ATTENTION.md (torch 2.13, AMD EPYC), where 8 of 9 gains are inside; the bounds are a choice."""
RATE_ON_DEVICE = {Estimate.EXPECTED: 0.65, Estimate.LOW: 0.4, Estimate.HIGH: 0.85}
"""FlashAttention-2 reaches 50 to 73 % of an A100's peak forwards and 44 to 63 % backwards (arXiv 2307.08691, section
4.1); that large products reach 80 % is an assumption."""
DISPATCH_LEFT = 0.25
"""One call remains of at least four: a multiplication, a scaling, a softmax and a multiplication."""


def with_fused_attention(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Computes attention with one fused kernel, which keeps the scores on the chip.

    Returns None if shapes do not give the rate of the linear layers.

    Changes: the operators of attention, forward and backward, take as long as their matrix multiplications alone. These
    run at a share of the rate that the linear layers reach in this recording (RATE_ON_DEVICE, RATE_ON_CPU). On a
    device, DISPATCH_LEFT of the host's time for these operators remains. Never longer than as recorded.
    Assumes: scaled_dot_product_attention has a fused kernel for these shapes, types and masks.
    Bounds: the lowest and the highest of these shares.
    """
    recording = graph.base.recording
    work = attention_work(recording)
    if work is None:
        return None
    if not recording.on_device:
        left = _left(work.fused_ns / RATE_ON_CPU[estimate], work.spans.total())
        edges, recorded = recording.steps.edges, graph.base.graph.items.gap.of(Activity.DISPATCH)[1:]
        part = np.zeros(len(edges))
        part[1:] = np.minimum(work.spans.covered(edges[:-1], edges[1:]) / np.maximum(recorded, 1), 1.0)
        return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, 1 - part * (1 - left)))
    ops = recording.trace.device_ops
    left = _left(work.fused_ns / RATE_ON_DEVICE[estimate], float((ops.end - ops.start)[work.kernels].sum()))
    factors = np.where(work.kernels, left, 1.0)
    gap = graph.gap_scaled(Activity.DISPATCH, 1 - graph.gap_share_in(work.spans) * (1 - DISPATCH_LEFT))
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)), gap=gap)


def _left(fused: float, now: float) -> float:
    return min(fused / max(now, 1.0), 1.0)


FUSED_ATTENTION = Scenario("attention", with_fused_attention, on_cpu=True)
