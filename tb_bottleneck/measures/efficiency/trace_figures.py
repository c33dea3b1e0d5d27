"""The figures of efficiency of a trace, such as samples per step, tokens per step, and the share of useful time.

Energy is known only if the trace has counters with the power of the board.
"""

import re

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.measures.batch_size import SamplesPerStep, batch_size_of
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.measures.efficiency.utilisation import Utilisation, tensor_share, utilisation
from tb_bottleneck.measures.trace.hardware_counters import mean_power
from tb_bottleneck.measures.trace.window_rows import in_host_steps
from tb_bottleneck.trace.forward_links import is_autograd_node
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.operands import operands_of

_EMBEDDING = "aten::embedding"  # (weight, indices, ...)
_ATTENTION = re.compile(r"attention|flash_attn|^aten::_(?:safe_)?softmax$")
_BATCH_AND_LENGTH = 2  # dimensions of the indices of an embedding of tokens
# With fewer steps, the median is not the time of a usual step.
MIN_STEPS_OF_GOODPUT = 3


def tokens_per_step(recording: Recording) -> Figure:
    """Returns the number of tokens per step: the number of indices that the first embedding of the forward pass looks
    up.

    Embeddings with tables of another size, such as position embeddings, are not counted. The figure is unknown for
    models without attention, whose embeddings do not look up tokens.
    """
    trace, events = recording.trace, recording.trace.events
    if not any(_ATTENTION.search(name) for name in trace.names):
        return unknown("no_attention")
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    rows = rows[name_matches(trace.names, events.name[rows], _EMBEDDING.__eq__)]
    again = np.zeros(len(rows), np.bool_)
    nodes = np.flatnonzero(is_autograd_node(trace))
    for thread in np.unique(events.thread[rows], return_counts=True)[0].tolist():
        around, own = nodes[events.thread[nodes] == thread], events.thread[rows] == thread
        if len(around):
            again[own] = innermost(events.start[around], events.end[around], events.start[rows[own]])[0]
    counts: dict[object, int] = {}
    for row in rows[~again].tolist():
        operands = operands_of(trace.signatures[events.signature[row]])
        dims = operands.dims if operands is not None else ()
        if len(dims) > 1 and len(dims[1]) >= _BATCH_AND_LENGTH:
            counts[dims[0]] = counts.get(dims[0], 0) + int(np.prod(dims[1]))
    first = next(iter(counts.values()), 0)
    return known(first / len(recording.steps), "embedding") if first else unknown("no_embedding")


def samples_figure(samples: SamplesPerStep | Missing) -> Figure:
    """Returns `samples` as a figure. The figure is unknown if `samples` is Missing."""
    if isinstance(samples, Missing):
        return unknown("as_stated", because=samples.because)
    return known(float(samples.samples), "as_stated", because=samples.basis)


def goodput_of_trace(recording: Recording) -> Figure:
    """Returns the share of a trace's time in useful steps: steps x median step time / time of the window, at most 1.
    The figure is unknown for fewer than MIN_STEPS_OF_GOODPUT steps."""
    steps = recording.steps
    if steps.basis == "whole":
        return unknown("no_steps")
    if len(steps) < MIN_STEPS_OF_GOODPUT:
        return unknown("few_steps")
    share = len(steps) * percentile(steps.durations.astype(np.float64), 50) / recording.account.window
    return known(min(share, 1.0), "recorded_steps", steps=f"{len(steps):,}")


def trace_figures(recording: Recording) -> Utilisation:
    """Returns all figures of a trace by name: utilisation, tensor cores, samples, tokens, goodput and energy."""
    used = utilisation(recording)
    figures: Figures = {
        **used.figures,
        "tensor_share": tensor_share(recording),
        "samples_per_step": samples_figure(batch_size_of(recording)),
        "tokens_per_step": tokens_per_step(recording),
        "goodput": goodput_of_trace(recording),
        "joules_per_step": _energy(recording),
    }
    return Utilisation(figures, used.types)


def _energy(recording: Recording) -> Figure:
    """Returns the energy of a step in J: mean sampled power of the board x mean step time."""
    power = mean_power(recording)
    if isinstance(power, Missing):
        return unknown("needs_telemetry")
    return known(power.value * recording.account.window / len(recording.steps) / NS_PER_S, "counters")
