"""Measures of recurrent cells that a Python loop calls for one time step after the other.

nn.LSTM and nn.GRU compute all time steps in one call.
"""

import re

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, clip, union
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.launch.operator_loops import loop_time, top_level
from tb_bottleneck.measures.trace.window_rows import in_host_steps, with_example
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind

CELLS = frozenset(f"aten::{name}_cell" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
_BACKWARD = re.compile(r"autograd::engine::evaluate_function: \w*(Lstm|Gru|Rnn)\w*CellBackward", re.IGNORECASE)


def cells_per_step(recording: Recording) -> Measure | Missing:
    """Number of calls of recurrent cells per step; missing if there is none."""
    events, rows = recording.trace.events, top_level(recording)
    rows = rows[name_matches(recording.trace.names, events.name[rows], CELLS.__contains__)]
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

    A cell is a top-level operator of the main thread; its backward pass may run in a thread of autograd."""
    events, forward = recording.trace.events, top_level(recording)
    forward = forward[name_matches(recording.trace.names, events.name[forward], CELLS.__contains__)]
    if not len(forward):
        return union((), ())
    backward = recording.trace.rows(Kind.CPU_OP)
    backward = backward[in_host_steps(recording, events.start[backward])]
    called = name_matches(recording.trace.names, events.name[backward], lambda name: _BACKWARD.match(name) is not None)
    parts = [loop_time(recording, rows) for rows in (forward, backward[called])]
    return union(np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts]))
