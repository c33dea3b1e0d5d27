"""Sizes are padded so that products load their operands in full width, as the recording's aligned products do.

Changes: kernels chosen for odd shapes reach the share of the device's peak that aligned products of their type reach.
Assumes: padding adds little to the work, and aligned products of these sizes run as well as the others.
Bounds: never shorter than their tensors take at the device's bandwidth. At worst they get half of the way there; at
best they reach what the best tenth of the aligned products' time reaches.
"""

import numpy as np

from tb_bottleneck.knowledge.precisions import misaligned, precision_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools, Floats, Ints

BEST = 0.9
# Fewer aligned products than these tell no rate.
MIN_ALIGNED = 3


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Shortens the products; None where shapes do not tell the rates, or no aligned product of their type ran."""
    recording = graph.base.recording
    ops, roofs, names = recording.trace.device_ops, recording.kernel_bounds, recording.trace.names
    bound = (ops.work == Work.CONTRACTION) & (roofs.bound_by == BoundBy.COMPUTE) & (roofs.reached > 0)
    odd = name_matches(names, ops.name, misaligned)
    left = np.ones(len(ops))
    for dtype in {_dtype(names[name]) for name in np.unique(ops.name[bound & odd]).tolist()}:
        alike = bound & name_matches(names, ops.name, lambda name, dtype=dtype: _dtype(name) == dtype)  # type: ignore[misc]
        rate = _rate(roofs.reached, ops.end - ops.start, alike & ~odd, best=estimate is Estimate.HIGH)
        if rate is not None:
            mine = alike & odd
            left[mine] = np.clip(roofs.reached[mine] / rate, np.minimum(roofs.other[mine], 1.0), 1.0)
    if not (left < 1).any():
        return None
    halfway = (1 + left) / 2 if estimate is Estimate.LOW else left
    return graph.with_items(length=scale_column(graph.items.length, _of_items(graph, halfway)))


def _dtype(name: str) -> tuple[str, str | None] | None:
    told = precision_of(name)
    return (told.unit, told.dtype) if told is not None else None


def _rate(reached: Floats, length: Ints, rows: Bools, best: bool) -> float | None:
    """The share of the peak that these products reach, weighted by time; of the best of them, or at the median."""
    found = np.flatnonzero(rows)
    if len(found) < MIN_ALIGNED:
        return None
    order = found[np.argsort(reached[found], kind="stable")]
    time = np.cumsum(length[order])
    return float(reached[order[np.searchsorted(time, time[-1] * (BEST if best else 0.5))]])


def _of_items(graph: ModifiedGraph, left: Floats) -> Floats:
    """Of each item, what is left of its operation; the factors are of the judged device's operations."""
    recording = graph.base.recording
    every = np.ones(len(graph.base.ops) + 1)  # the last one stands for items without an operation
    every[np.flatnonzero(graph.base.ops.device == recording.trace.device_index)] = left
    return np.asarray(every[graph.items.op])


SCENARIO = Scenario("alignment", apply)
