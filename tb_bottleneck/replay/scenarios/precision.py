"""Runs products that use fp32 on vector units on matrix units: as TF32, or in half precision.

Changes: the length of these kernels. On matrix units, each reaches PEAK_SHARE_KEPT of the share of the peak that it
reaches now.
Assumes: the model trains as well in that precision.
Bounds: never shorter than the memory traffic takes at the device's bandwidth, if shapes were recorded. Low: half of the
expected rate. High: the same share of the higher peak as of the lower one.
"""

import numpy as np

from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.roofline.device_peaks import Peaks, peaks_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Bools, Floats

# Matrix units are harder to keep busy: a kernel that reached half of the vector peak reaches about a quarter of theirs.
PEAK_SHARE_KEPT = {Estimate.EXPECTED: 0.5, Estimate.LOW: 0.25, Estimate.HIGH: 1.0}


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Shortens the products. Returns None if the device's peaks are unknown or it has no such units."""
    peaks = peaks_of(graph.base.recording.trace)
    faster = _faster(peaks) if peaks is not None else None
    if faster is None:
        return None
    remaining = np.maximum(min(1 / (faster * PEAK_SHARE_KEPT[estimate]), 1.0), _memory_share(graph))
    length = scale_column(graph.items.length, np.minimum(remaining, 1.0))
    return graph.with_items(length=np.where(_ordinary_products(graph), length, graph.items.length))


def _faster(peaks: Peaks) -> float | None:
    """Returns matrix peak / vector peak, with TF32 if available, otherwise half precision."""
    rate = peaks.tensor.get("tf32") or peaks.tensor.get("bf16") or peaks.tensor.get("fp16")
    return rate / peaks.vector if rate and peaks.vector else None


def _ordinary_products(graph: ModifiedGraph) -> Bools:
    """Returns the items with fp32 products on vector units."""
    items, ops, names = graph.items, graph.base.ops, graph.base.recording.trace.names
    products = graph.with_work(Work.CONTRACTION)
    precisions = {name: precision_of(names[name]) for name in np.unique(ops.name[items.op[products]]).tolist()}
    plain = [
        name
        for name, precision in precisions.items()
        if precision is not None and (precision.unit, precision.dtype) == ("vector", "fp32")
    ]
    mask: Bools = products & np.isin(ops.name[items.op], plain)
    return mask


def _memory_share(graph: ModifiedGraph) -> Floats:
    """Returns each item's memory time at the device's bandwidth / its length; 0 if not known."""
    recording, ops = graph.base.recording, graph.base.ops
    shares = np.zeros(len(ops) + 1)
    mine = np.flatnonzero(ops.device == recording.trace.device_index)
    bounds = recording.kernel_bounds
    shares[mine] = np.where(bounds.bound_by == BoundBy.COMPUTE, bounds.other, bounds.reached)
    return shares[graph.items.op]


SCENARIO = Scenario("precision", apply)
