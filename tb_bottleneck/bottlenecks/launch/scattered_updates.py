"""Measures of scattered updates: Python loops that update or reduce many tensors one by one.

Examples are moving averages of weights, norms of gradients, and clipping. torch._foreach_* does the same for all
tensors with a few launches.
"""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, intersect, subtract
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.launch.operator_loops import loop_time, top_level
from tb_bottleneck.measures.trace.window_rows import host_step_of, with_example
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Ints

UPDATES = frozenset(
    f"aten::{name}"
    for name in (
        *("mul_", "add_", "sub_", "div_", "lerp_", "copy_", "zero_", "fill_", "clamp_", "addcmul_", "addcdiv_"),
        *("mul", "add", "sub", "div", "square", "pow", "sum", "norm", "linalg_vector_norm", "abs", "max", "mean"),
        *("isfinite", "isnan", "all", "any", "logical_not", "reciprocal", "sqrt", "neg"),
    )
)
"""Operators with which loops over parameters or gradients update or reduce a tensor. A layer also has others."""
READS = frozenset(f"aten::{name}" for name in ("item", "detach", "detach_", "to", "alias"))
"""Operators that may be part of such a loop, and update nothing."""
MIN_UPDATES, MAX_KINDS, MIN_PART = 40, 4, 0.25
"""Smallest number of operators of a loop, largest number of their names, and smallest share of UPDATES. Layers without
parameters, such as chains of additions, have fewer operators or more names. All are choices."""


def scattered_updates_per_step(recording: Recording) -> Measure | Missing:
    """Number of operators per step in loops over tensors; missing if there is no such loop."""
    rows = _rows(recording)
    if not len(rows):
        return Missing("no loop updates tensors one by one")
    events = recording.trace.events
    return with_example(len(rows) / len(recording.steps), "count", "step", events.start[rows], events.end[rows])


def scattered_operators(recording: Recording) -> Measure | Missing:
    """Names of the operators of the loops, the most frequent first, as text."""
    rows = _rows(recording)
    names, counts = np.unique(recording.trace.events.name[rows], return_counts=True)
    shown = [recording.trace.names[name] for name in names[np.argsort(-counts, kind="stable")][:MAX_KINDS].tolist()]
    return text_measure(", ".join(shown)) if shown else Missing("no loop updates tensors one by one")


def idle_in_scattered_updates(recording: Recording) -> Measure:
    """Share of the window in which the device is idle during loops over tensors; on a CPU run, in which their operators
    are called and do not compute."""
    spans = scattered_updates(recording)
    idle = recording.idle if recording.on_device else recording.owned_spans.of(Regime.LAUNCH)
    return Measure(intersect(idle, spans).total() / recording.account.window, "share", "window", len(spans))


@memoized
def scattered_updates(recording: Recording) -> Spans:
    """Returns the time of all loops over tensors, without Optimizer.step."""
    return subtract(loop_time(recording, _rows(recording)), recording.optimizer_steps)


@memoized
def _rows(recording: Recording) -> Ints:
    """Returns the top-level operators of the main thread that belong to loops over tensors, as rows of
    `trace.events`."""
    events, rows = recording.trace.events, top_level(recording)
    rows = rows[~recording.optimizer_steps.contains(events.start[rows])]
    updates, reads = (
        name_matches(recording.trace.names, events.name[rows], names.__contains__) for names in (UPDATES, READS)
    )
    step = host_step_of(recording, events.start[rows])
    # Each other operator has a number of its own, so that it ends a loop, as the end of a step does.
    begins = np.flatnonzero(np.diff(np.append(-1, np.where(updates | reads, step, -2 - np.arange(len(rows))))))
    ends = np.append(begins[1:], len(rows))[: len(begins)]
    long = ends - begins >= MIN_UPDATES
    kept = [np.empty(0, np.int64)]
    for begin, end in zip(begins[long].tolist(), ends[long].tolist(), strict=True):
        if updates[begin:end].mean() >= MIN_PART and len(np.unique(events.name[rows[begin:end]])) <= MAX_KINDS:
            kept.append(rows[begin:end])
    found: Ints = np.concatenate(kept)
    return found
