"""Runs products in mixed precision: half precision on matrix units, as with autocast.

Changes: the length of products in fp32, and of the operations between them, as `what-if --precision` predicts it
(replay/product_precision.py). Devices without bf16 use fp16.
Assumes: the model trains as well in that precision.
Bounds: never shorter than the memory traffic takes at the device's bandwidth, if shapes were recorded. The low and
high estimates are in replay/product_precision.py.
"""

import numpy as np

from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.product_precision import (
    HALF_TYPES,
    precision_factors,
    rates_of_wider_products,
    times_at_recorded_roofs,
)
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.roofline.device_peaks import peaks_of


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Shortens the operations. Returns None if the device's peaks are unknown or it has no such units."""
    recording = graph.base.recording
    peaks = peaks_of(recording.trace)
    if peaks is None:
        return None
    dtype = next((dtype for dtype in HALF_TYPES if peaks.tensor.get(dtype)), None)
    if dtype is None:
        return None
    rates = rates_of_wider_products(recording, dtype, lambda precision: peaks.of(precision) or peaks.vector)
    ratio = np.divide(peaks.tensor[dtype], rates, out=np.zeros(len(rates)), where=rates > 0)
    factors = precision_factors(recording, ratio, times_at_recorded_roofs(recording), True, estimate)
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)))


SCENARIO = Scenario("precision", apply)
