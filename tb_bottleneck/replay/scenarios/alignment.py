"""Pads sizes so that products load their operands at full width, as the recording's aligned products do.

Changes: kernels chosen for odd shapes reach the same share of the device's peak as aligned products of their type.
Assumes: padding adds little work, and aligned products of these sizes run as well as the recorded aligned ones.
Bounds: never shorter than the memory traffic takes at the device's bandwidth. Low: half of the improvement. High: the
share of the peak that the best tenth of the aligned products (by time) reaches.
"""

import numpy as np

from tb_bottleneck.base.order_statistics import distinct_values
from tb_bottleneck.knowledge.catalogue import misaligned, precision_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools, Floats, Ints

BEST_TIME_SHARE = 0.9
# With fewer aligned products, no rate can be derived.
MIN_ALIGNED = 3


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Shortens the products. Returns None if shapes do not give the rates, or no aligned product of the type ran."""
    recording = graph.base.recording
    ops, bounds, names = recording.trace.device_ops, recording.kernel_bounds, recording.trace.names
    compute_bound = (ops.work == Work.CONTRACTION) & (bounds.bound_by == BoundBy.COMPUTE) & (bounds.reached > 0)
    odd = name_matches(names, ops.name, misaligned)
    factors = np.ones(len(ops))
    for dtype in {_dtype(names[name]) for name in distinct_values(ops.name[compute_bound & odd]).tolist()}:
        same_type = compute_bound & name_matches(names, ops.name, lambda name, dtype=dtype: _dtype(name) == dtype)  # type: ignore[misc]
        rate = _rate(bounds.reached, ops.end - ops.start, same_type & ~odd, best=estimate is Estimate.HIGH)
        if rate is not None:
            rows = same_type & odd
            factors[rows] = np.clip(bounds.reached[rows] / rate, np.minimum(bounds.other[rows], 1.0), 1.0)
    if not (factors < 1).any():
        return None
    halfway = (1 + factors) / 2 if estimate is Estimate.LOW else factors
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(halfway)))


def _dtype(name: str) -> tuple[str, str | None] | None:
    precision = precision_of(name)
    return (precision.unit, precision.dtype) if precision is not None else None


def _rate(reached: Floats, length: Ints, rows: Bools, best: bool) -> float | None:
    """Returns the share of the peak that these products reach, weighted by time: of the best tenth, or the median."""
    selected = np.flatnonzero(rows)
    if len(selected) < MIN_ALIGNED:
        return None
    order = selected[np.argsort(reached[selected], kind="stable")]
    time = np.cumsum(length[order])
    return float(reached[order[np.searchsorted(time, time[-1] * (BEST_TIME_SHARE if best else 0.5))]])


SCENARIO = Scenario("alignment", apply)
