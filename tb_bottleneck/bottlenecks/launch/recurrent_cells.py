"""Measures of recurrent cells that a Python loop calls for one time step after the other.

nn.LSTM and nn.GRU compute all time steps in one call. A cell is one of torch's cells, or a sequence of layers that a
loop calls for each time step: it selects the inputs of the step, and has a product and an activation of a gate.
"""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, clip, union
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.launch.operator_loops import (
    SELECTS,
    batches_of_one,
    loop_time,
    repeats,
    top_level,
)
from tb_bottleneck.measures.trace.window_rows import in_host_steps, with_example
from tb_bottleneck.trace.forward_links import forward_links
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Rows

CELLS = frozenset(f"aten::{name}_cell" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
_PRODUCTS = frozenset(f"aten::{name}" for name in ("linear", "matmul", "mm", "addmm", "bmm", "baddbmm"))
_GATES = frozenset(f"aten::{name}" for name in ("tanh", "tanh_", "sigmoid", "sigmoid_"))


def cells_per_step(recording: Recording) -> Measure | Missing:
    """Number of calls of recurrent cells per step; missing if there is none."""
    events, rows = recording.trace.events, _cells(recording)
    if not len(rows):
        return Missing("no recurrent cell is called")
    return with_example(len(rows) / len(recording.steps), "count", "step", events.start[rows], events.end[rows])


def idle_in_cells(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device is idle during loops over recurrent cells; missing for a run on the
    CPU."""
    if not recording.on_device:
        return Missing("the run has no device")
    spans = recurrent_cells(recording)
    idle = int(recording.idle.covered(spans.starts, spans.ends).sum())
    return Measure(idle / recording.account.window, "share", "window", len(spans))


def cells_share(recording: Recording) -> Measure:
    """Share of the window in loops over recurrent cells on the host. On a CPU run, their backward pass is not among
    them: its nodes are those of the operators in a cell."""
    spans, steps = recurrent_cells(recording), recording.steps
    return Measure(
        clip(spans, steps.begin, steps.end).total() / recording.account.window, "share", "window", len(spans)
    )


@memoized
def recurrent_cells(recording: Recording) -> Spans:
    """Returns the time of loops over recurrent cells, forward and backward, with what the loops do between the cells.

    The backward pass, which may run in a thread of autograd, is found by the sequence numbers of the operators."""
    trace, forward = recording.trace, top_level(recording)[_in_cells(recording)]
    if not len(forward):
        return union((), ())
    loops, links = loop_time(recording, forward), forward_links(trace)
    numbers = links.sequence[loops.contains(trace.events.start[links.forward])]
    backward = np.concatenate([*links.backward.values(), np.empty(0, np.int64)]).astype(np.int64)
    backward = backward[in_host_steps(recording, trace.events.start[backward])]
    passed = loop_time(recording, backward[np.isin(trace.events.sequence[backward], numbers)])
    return union(np.concatenate((loops.starts, passed.starts)), np.concatenate((loops.ends, passed.ends)))


def _cells(recording: Recording) -> Rows:
    """Returns one operator of each cell, as rows of events."""
    rows = top_level(recording)
    torch = name_matches(recording.trace.names, recording.trace.events.name[rows], CELLS.__contains__)
    own = [at + period * np.arange(calls) for at, period, calls in _own_cells(recording)]
    return rows[np.sort(np.concatenate((np.flatnonzero(torch), *own)))]


def _in_cells(recording: Recording) -> Bools:
    """Returns a mask of the operators of `top_level` that belong to cells."""
    rows = top_level(recording)
    mask = name_matches(recording.trace.names, recording.trace.events.name[rows], CELLS.__contains__)
    for at, period, calls in _own_cells(recording):
        mask[at : at + period * calls] = True
    return mask


@memoized
def _own_cells(recording: Recording) -> tuple[tuple[int, int, int], ...]:
    """Returns the loops over cells of own layers, as `repeats` does."""
    trace, rows = recording.trace, top_level(recording)
    selects, products, gates = (
        name_matches(trace.names, trace.events.name[rows], test)
        for test in (SELECTS.__eq__, _PRODUCTS.__contains__, _GATES.__contains__)
    )
    steps = selects & ~batches_of_one(recording)
    return tuple(
        (at, period, calls)
        for at, period, calls in repeats(recording)
        if all(mask[at : at + period].any() for mask in (steps, products, gates))
    )
