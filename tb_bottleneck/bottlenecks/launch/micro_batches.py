"""Measures of the samples in a pass, and of micro-batches: equal portions of a batch whose gradients are accumulated.

Each micro-batch costs the host a whole forward and backward pass. If the device waits for these calls, one pass with
all samples takes hardly longer than one micro-batch.
"""

from itertools import pairwise
from math import ceil, log2

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, known_value
from tb_bottleneck.bottlenecks.allocator.facts import fitting_batch
from tb_bottleneck.bottlenecks.launch.operator_loops import RepeatedCalls, top_level
from tb_bottleneck.measures.profiler_overhead import profiler_overhead
from tb_bottleneck.measures.trace.window_rows import host_step_of, with_example
from tb_bottleneck.trace.kernel_names import name_matches

BACKWARD = "aten::ones_like"
"""The operator with which `backward` makes the gradient of a loss, outside of any other operator
(torch/autograd/__init__.py: _make_grads)."""
MIN_OPERATORS = 3
_UNLIKE = ("aten::slice", "aten::select", "aten::narrow", "autograd::engine::evaluate_function")
"""The beginnings of the names of operators that differ between micro-batches, or do no work."""


def micro_batches_per_step(recording: Recording) -> Measure | Missing:
    """Number of micro-batches per step; missing if no step has several."""
    found = micro_batches(recording)
    if not len(found.begin):
        return Missing("no step has several equal passes")
    return with_example(len(found.begin) / len(recording.steps), "count", "step", found.begin, found.end)


def idle_in_micro_batches(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle during micro-batches, without the first one of each step."""
    others = micro_batches(recording).others
    if not len(others):
        return Missing("no step has several equal passes")
    idle = int(recording.idle.covered(others.starts, others.ends).sum())
    return Measure(idle / recording.account.window, "share", "window", len(others))


def batch_to_try(recording: Recording) -> Measure | Missing:
    """Power of two by which the batch can be multiplied so that the device, not the host, takes the whole step (count):
    step / time in which the device works, rounded up, at most `fitting_batch`. Missing if the memory does not allow
    twice the batch, if the device works for more than half of the time, or if a step has micro-batches, which are
    merged first. If the profiler's overhead is not known, the step is as recorded, and the factor up to twice as large.
    """
    if len(micro_batches(recording).begin):
        return Missing("the micro-batches of a step are merged first")
    fits, window = known_value(fitting_batch(recording)) or 0.0, recording.account.window
    without_profiler = window * (1 - (known_value(profiler_overhead(recording)) or 0.0))
    waits = without_profiler / max(window - recording.idle.total(), 1)
    if min(waits, fits) < 2:
        return Missing("a larger batch does not fit, or would take longer")
    return Measure(min(2.0 ** ceil(log2(waits)), fits), "count")


@memoized
def micro_batches(recording: Recording) -> RepeatedCalls:
    """Returns the forward and backward passes of all micro-batches, in order of time.

    A pass begins with the first operator of the main thread after the call of `backward` of the pass before. Passes are
    micro-batches if their operators have equal names and shapes. The first pass of a step, which follows the operators
    of the step before, ends with the same operators as the others.
    """
    events, rows = recording.trace.events, top_level(recording)
    # Slices of the batch begin at other indices. On a CPU run, the main thread runs the backward pass, too, which adds
    # to the gradients from the second pass on.
    rows = rows[~name_matches(recording.trace.names, events.name[rows], lambda name: name.startswith(_UNLIKE))]
    starts = events.start[rows]
    roots = np.flatnonzero(name_matches(recording.trace.names, events.name[rows], BACKWARD.__eq__))
    step = host_step_of(recording, starts[roots])
    several = len(roots) > len(np.unique(step))  # usually not
    keys = np.stack((events.name[rows], events.signature[rows]), axis=1) if several else roots[:0]
    begin, end, first = [], [], []
    for number in np.unique(step).tolist() if several else ():
        own = roots[step == number].tolist()
        passes = [keys[one + 1 : other + 1] for one, other in pairwise(own)]
        length = len(passes[0]) if passes else 0
        leading = own[0] + 1 - length if own else 0
        if length < MIN_OPERATORS or leading < 0:
            continue
        if not all(np.array_equal(each, passes[0]) for each in (*passes, keys[leading : own[0] + 1])):
            continue
        edges = starts[[leading, *(root + 1 for root in own[:-1])]]
        after = rows[own[-1] + 1 :][:1]  # the last backward pass ends before the next operator of the main thread
        last = int(events.start[after[0]]) if len(after) else int(events.end[rows[own[-1]]])
        begin.append(edges)
        end.append(np.append(edges[1:], last))
        first.append(np.arange(len(own)) == 0)
    if not begin:
        return RepeatedCalls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))
    return RepeatedCalls(*(np.concatenate(column) for column in (begin, end, first)))
