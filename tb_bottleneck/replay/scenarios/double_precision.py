"""Works in float32 instead of float64.

Changes: kernels, on a CPU run operators, with float64 tensors take DOUBLE_LEFT of their time.
Assumes: the model trains as well in float32, and everything in float64 can be in float32.
Bounds: expected: half, because float32 has half of the bytes, and a vector unit of a CPU holds twice as many numbers.
Low: a quarter is saved. High: on the CPU a third remains, because more of the data fits into the caches; products on a
device take 1/64, the rate of float64 on consumer GPUs (CUDA C++ programming guide, arithmetic instructions: 2 of 128
results per clock and multiprocessor for compute capability 8.6 and 8.9).
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.measures.trace.products import double_kernels, double_time
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work

DOUBLE_LEFT = {Estimate.EXPECTED: 0.5, Estimate.LOW: 0.75, Estimate.HIGH: 0.33}
PRODUCTS_LEFT = DOUBLE_LEFT | {Estimate.HIGH: 1 / 64}


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the work in float64."""
    recording = graph.base.recording
    if not recording.on_device:
        edges, recorded = recording.steps.edges, graph.base.graph.items.gap.of(Activity.DISPATCH)[1:]
        part = np.zeros(len(edges))
        part[1:] = np.minimum(double_time(recording).covered(edges[:-1], edges[1:]) / np.maximum(recorded, 1), 1.0)
        return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, 1 - part * (1 - DOUBLE_LEFT[estimate])))
    products = recording.trace.device_ops.work == Work.CONTRACTION
    left = np.where(products, PRODUCTS_LEFT[estimate], DOUBLE_LEFT[estimate])
    factors = np.where(double_kernels(recording), left, 1.0)
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)))


SCENARIO = Scenario("double_precision", apply, on_cpu=True)
