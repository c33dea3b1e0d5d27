"""How many samples a step works on, as far as a recording tells: from shapes, or from the run's own words."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import union
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.loader import fetches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Rows
from tb_bottleneck.trace.trace import Trace

LINEAR_LAYER = "linear layer"
# Operators that models begin with, and which of their inputs has the samples in its first dimension. Wrappers suffice:
# they are recorded with the same shapes as what they call.
_FIRST_LAYERS = {
    "aten::conv1d": (0, "convolution"),
    "aten::conv2d": (0, "convolution"),
    "aten::conv3d": (0, "convolution"),
    "aten::convolution": (0, "convolution"),
    "aten::embedding": (1, "embedding"),
    "aten::batch_norm": (0, "batch norm"),
    "aten::linear": (0, LINEAR_LAYER),
}
_LOSSES = (
    "aten::cross_entropy_loss",
    "aten::nll_loss_nd",
    "aten::mse_loss",
    "aten::binary_cross_entropy_with_logits",
    "aten::binary_cross_entropy",
    "aten::l1_loss",
    "aten::smooth_l1_loss",
)
# An input with fewer dimensions than this has no dimension of samples besides that of values.
_LEAST_DIMENSIONS = 2
_MOST_SAMPLES = 1 << 30
# A layer that has a usable shape comes early, or the shapes are not what they seem.
_MOST_LAYERS_ASKED = 8


@dataclass(frozen=True)
class SamplesPerStep:
    """Samples per step, and what tells it."""

    samples: int
    basis: str


def batch_size_of(recording: Recording) -> SamplesPerStep | Missing:
    """The samples of one step.

    Said by the run's context (`batch_size`), else the first dimension of what the first layer of each step is given.
    That times the losses per step, where losses were recorded: gradients accumulate over them. Missing where no shapes
    were recorded, where the first layer is none of the known ones, or where the steps do not agree. A linear layer may
    be given sequences of samples as well as samples of sequences: there the first dimension of the loss tells which.
    """
    passes = passes_of(recording)
    said = recording.trace.header.context.get("batch_size")
    if isinstance(said, int) and not isinstance(said, bool) and 0 < said < _MOST_SAMPLES:
        return SamplesPerStep(said * passes, _basis("the run's context", passes))
    first = _first_layers(recording)
    if not first:
        return Missing("the batch size cannot be told: no shape of a first layer tells it (record_shapes=True)")
    if len(set(first)) > 1:
        return Missing(
            "the batch size cannot be told: the steps do not agree on the shape of their first layer's input"
        )
    samples, layer = first[0]
    return SamplesPerStep(samples * passes, _basis(f"the first dimension of the first {layer}'s input", passes))


def _basis(basis: str, passes: int) -> str:
    return basis if passes == 1 else f"{basis}, times {passes} passes per step"


def _first_layers(recording: Recording) -> list[tuple[int, str]]:
    """(samples, kind) of the first layer of each step that has one."""
    trace, steps, rows = recording.trace, recording.steps, _layers(recording)
    if steps.basis == "whole":
        bounds = np.array([0, len(rows)])
    else:
        bounds = np.searchsorted(trace.events.start[rows], steps.host)
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    loss = _loss_samples(trace)
    found = (_first_shape(trace, rows[begin : min(end, begin + _MOST_LAYERS_ASKED)], loss) for begin, end in pairs)
    return [one for one in found if one is not None]


def _first_shape(trace: Trace, rows: Rows, loss: int | None) -> tuple[int, str] | None:
    for row in rows.tolist():
        index, layer = _FIRST_LAYERS[trace.names[trace.events.name[row]]]
        operands = operands_of(trace.signatures[trace.events.signature[row]])
        shape = operands.dims[index] if operands is not None and index < len(operands.dims) else ()
        sizes = [size for size in shape if isinstance(size, int) and 0 < size < _MOST_SAMPLES]
        if len(shape) < _LEAST_DIMENSIONS or len(sizes) < len(shape):
            continue
        if layer != LINEAR_LAYER or (loss is None and len(sizes) == _LEAST_DIMENSIONS):
            return sizes[0], layer
        return next(((size, layer) for size in sizes[: len(sizes) - 1][:2] if size == loss), None)
    return None


def _loss_samples(trace: Trace) -> int | None:
    """The first dimension of what the first loss with a shape is given."""
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in _LOSSES)]
    for row in rows[:_MOST_LAYERS_ASKED].tolist():
        operands = operands_of(trace.signatures[trace.events.signature[row]])
        shape = operands.dims[0] if operands is not None and operands.dims else ()
        if len(shape) and isinstance(shape[0], int):
            return shape[0]
    return None


def _layers(recording: Recording) -> Rows:
    """Rows of first-layer operators with shapes, outside of the loader, in order of time."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in _FIRST_LAYERS)]
    rows = rows[trace.events.signature[rows] > 0]
    loading = fetches(recording)
    inside = union(trace.events.start[loading], trace.events.end[loading]).contains(trace.events.start[rows])
    return rows[~inside]


def passes_of(recording: Recording) -> int:
    """Forward passes per step: losses per step, where all steps have the same number of them; else one.

    A model may have several losses, too: of passes, the first layer is called as often.
    """
    trace, steps = recording.trace, recording.steps
    rows = trace.rows(Kind.CPU_OP)
    if steps.basis == "whole":
        return 1
    for loss in _LOSSES:
        times = trace.events.start[rows[name_matches(trace.names, trace.events.name[rows], loss.__eq__)]]
        times = times[(times >= steps.host[0]) & (times < steps.host[-1])]
        counts = np.bincount(np.searchsorted(steps.host, times, side="right") - 1, minlength=len(steps))
        if len(times) and counts.min() == counts.max():
            return int(counts[0]) if _begins_so_often(recording, int(counts[0])) else 1
    return 1


def _begins_so_often(recording: Recording, passes: int) -> bool:
    """Whether the first layer is called once, or several times, in each of so many passes; True where none is known."""
    trace, steps = recording.trace, recording.steps
    rows = _layers(recording)
    if not len(rows):  # no shapes were recorded
        rows = trace.rows(Kind.CPU_OP)
        rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in _FIRST_LAYERS)]
    rows = rows[(trace.events.start[rows] >= steps.host[0]) & (trace.events.start[rows] < steps.host[-1])]
    if not len(rows):
        return True
    first = rows[np.argmin(trace.events.start[rows])]
    alike = (trace.events.name[rows] == trace.events.name[first]) & (
        trace.events.signature[rows] == trace.events.signature[first]
    )
    return bool(alike.any()) and int(alike.sum()) % (passes * len(steps)) == 0
