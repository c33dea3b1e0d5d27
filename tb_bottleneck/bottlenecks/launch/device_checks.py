"""Measures of checks: conditions of the program that need a value from the device, such as `if x.isnan().any():`.

Each check launches small kernels and waits for their result, and no graph can contain it.
"""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.bottlenecks.launch.operator_loops import top_level
from tb_bottleneck.measures.trace.window_rows import with_example
from tb_bottleneck.trace.kernel_names import name_matches

CONDITION = "aten::is_nonzero"
"""The operator of bool(tensor), which `if`, `while` and `assert` call (ATen/native/TensorProperties.cpp)."""
COMPUTES_CONDITION = frozenset(
    f"aten::{name}"
    for name in (
        *("any", "all", "isnan", "isinf", "isfinite", "abs", "max", "min", "amax", "amin", "sum", "count_nonzero"),
        *("gt", "lt", "ge", "le", "eq", "ne", "equal", "allclose", "isclose"),
        *("logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or"),
    )
)
"""Operators that compute a condition if they come directly before it."""


def checks_per_step(recording: Recording) -> Measure:
    """Number of checks per step."""
    spans = device_checks(recording)
    return with_example(len(spans) / len(recording.steps), "count", "step", spans.starts, spans.ends)


def idle_in_checks(recording: Recording) -> Measure:
    """Share of the window in which the device is idle during checks."""
    spans = device_checks(recording)
    idle = int(recording.idle.covered(spans.starts, spans.ends).sum())
    return Measure(idle / recording.account.window, "share", "window", len(spans))


@memoized
def device_checks(recording: Recording) -> Spans:
    """Returns the time of each check on the main thread: of its condition, and of the operators directly before it that
    compute the condition."""
    events, rows = recording.trace.events, top_level(recording)
    conditions, computes = (
        name_matches(recording.trace.names, events.name[rows], test)
        for test in (CONDITION.__eq__, COMPUTES_CONDITION.__contains__)
    )
    others = np.flatnonzero(~computes & ~conditions)
    at = np.flatnonzero(conditions)
    # A check begins after the last operator before its condition that computes no condition, or after another check.
    before = np.append(-1, others)[np.searchsorted(others, at)]
    first = np.maximum(before, np.append(-1, at[:-1])[: len(at)]) + 1
    return union(events.start[rows[first]], events.end[rows[at]])
