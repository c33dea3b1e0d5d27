"""Samples per step, from recorded shapes or from the run's context."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.measures.trace.window_rows import fetches
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Rows
from tb_bottleneck.trace.trace import Trace

LINEAR_LAYER = "linear layer"
# Operators that models begin with -> (index of the input that has the samples in its first dimension, kind of layer).
# Outer operators suffice, because they are recorded with the same shapes as the operators that they call.
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
# Where a compiled model records its inputs: parameters, buffers and the batch, in any order.
_COMPILED = ("CompiledFunction", "Torch-Compiled Region")
LOSS_ROWS = "the first dimension of the loss's input"
# An input with fewer dimensions has only a dimension of values, and none of samples.
_MIN_DIMENSIONS = 2
_MAX_SAMPLES = 1 << 30
# If none of the first layers has a usable shape, the shapes of later layers have another meaning.
_MAX_LAYERS_TRIED = 8


@dataclass(frozen=True)
class SamplesPerStep:
    """The number of samples per step. `basis` says in words where the number comes from."""

    samples: int
    basis: str


def batch_size_of(recording: Recording) -> SamplesPerStep | Missing:
    """Returns the number of samples of one step.

    The number is samples of one forward pass x forward passes per step (`passes_of`). The samples of one pass are
    `batch_size` of the run's context, or else the first dimension of the input of the step's first layer. If this layer
    is linear, its input may have the samples in the first or in the second dimension: the dimension that equals the
    first dimension of the loss's input is used.

    A compiled model has no recorded layers. In this case, the samples are the first dimension of a model input for
    which this dimension, or the product of its first two dimensions (samples x positions), equals the first dimension
    of the loss's input. Without such an input, the samples are the first dimension of the loss's input.

    Missing if no shapes were recorded, if the first layer is of an unknown type, or if the steps disagree.
    """
    passes = passes_of(recording)
    logged = recording.trace.header.context.get("batch_size")
    if isinstance(logged, int) and not isinstance(logged, bool) and 0 < logged < _MAX_SAMPLES:
        return SamplesPerStep(logged * passes, _basis("the run's context", passes))
    layers = _first_layers(recording)
    compiled = _by_loss(trace=recording.trace) if not layers else None
    if compiled is not None:
        samples, basis = compiled
        return SamplesPerStep(samples * passes, _basis(basis, passes))
    if not layers:
        return Missing("the batch size is unknown: no shape of a first layer was recorded (record_shapes=True)")
    if len(set(layers)) > 1:
        return Missing("the batch size is unknown: the steps have different shapes of their first layer's input")
    samples, layer = layers[0]
    return SamplesPerStep(samples * passes, _basis(f"the first dimension of the first {layer}'s input", passes))


def _basis(basis: str, passes: int) -> str:
    """Returns `basis`, followed by the number of passes if it is not 1."""
    return basis if passes == 1 else f"{basis}, times {passes} passes per step"


def _first_layers(recording: Recording) -> list[tuple[int, str]]:
    """Returns a list with (samples, kind of layer) of the first layer of each step that has one."""
    trace, steps, rows = recording.trace, recording.steps, _layers(recording)
    if steps.basis == "whole":
        bounds = np.array([0, len(rows)])
    else:
        bounds = np.searchsorted(trace.events.start[rows], steps.host)
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    loss = _loss_samples(trace)
    shapes = (_first_shape(trace, rows[begin : min(end, begin + _MAX_LAYERS_TRIED)], loss) for begin, end in pairs)
    return [shape for shape in shapes if shape is not None]


def _first_shape(trace: Trace, rows: Rows, loss: int | None) -> tuple[int, str] | None:
    """Returns (samples, kind of layer) of the first of `rows` that has a usable shape, or None. `rows` are event rows
    of layers. `loss` is the first dimension of the loss's input, or None."""
    for row in rows.tolist():
        index, layer = _FIRST_LAYERS[trace.names[trace.events.name[row]]]
        operands = operands_of(trace.signatures[trace.events.signature[row]])
        shape = operands.dims[index] if operands is not None and index < len(operands.dims) else ()
        sizes = [size for size in shape if isinstance(size, int) and 0 < size < _MAX_SAMPLES]
        if len(shape) < _MIN_DIMENSIONS or len(sizes) < len(shape):
            continue
        if layer != LINEAR_LAYER or (loss is None and len(sizes) == _MIN_DIMENSIONS):
            return sizes[0], layer
        return next(((size, layer) for size in sizes[: len(sizes) - 1][:2] if size == loss), None)
    return None


def _loss_samples(trace: Trace) -> int | None:
    """Returns the first dimension of the input of the first recorded loss that has a shape; None if there is none."""
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in _LOSSES)]
    for row in rows[:_MAX_LAYERS_TRIED].tolist():
        operands = operands_of(trace.signatures[trace.events.signature[row]])
        shape = operands.dims[0] if operands is not None and operands.dims else ()
        if len(shape) and isinstance(shape[0], int):
            return shape[0]
    return None


def _by_loss(trace: Trace) -> tuple[int, str] | None:
    """Returns (samples, basis) of a model without recorded layers, such as a compiled model. Returns None if no loss
    has a shape."""
    loss = _loss_samples(trace)
    if loss is None or not 0 < loss < _MAX_SAMPLES:
        return None
    rows = trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(_COMPILED))]
    for row in rows[trace.events.signature[rows] > 0][:_MAX_LAYERS_TRIED].tolist():
        operands = operands_of(trace.signatures[trace.events.signature[row]])
        for shape in operands.dims if operands is not None else ():
            sizes = [size for size in shape if isinstance(size, int)]
            if len(sizes) >= _MIN_DIMENSIONS and loss in (sizes[0], sizes[0] * sizes[1]):
                return sizes[0], "the first dimension of the compiled model's input"
    return loss, LOSS_ROWS


def _layers(recording: Recording) -> Rows:
    """Returns the event rows of operators that can be a first layer and have shapes, in order of time. Operators inside
    the data loader are left out."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in _FIRST_LAYERS)]
    rows = rows[trace.events.signature[rows] > 0]
    loading = fetches(recording)
    inside = union(trace.events.start[loading], trace.events.end[loading]).contains(trace.events.start[rows])
    return rows[~inside]


def passes_of(recording: Recording) -> int:
    """Returns the number of forward passes per step: the calls of the loss per step if this number is the same in all
    steps, else 1.

    If the number of calls of the first layer is not a multiple of the calls of the loss, the model has several losses,
    and the result is 1.
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
            return int(counts[0]) if _first_layer_repeats(recording, int(counts[0])) else 1
    return 1


def _first_layer_repeats(recording: Recording, passes: int) -> bool:
    """Returns True if the number of calls of the first layer in the window is a multiple of `passes` x steps, or if no
    first layer is known."""
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
