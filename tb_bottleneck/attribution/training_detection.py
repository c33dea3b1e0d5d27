"""Detects whether a recording shows a training or inference, and the time in which optimizers run.

An evaluation interrupts a training, but in a recording of inference, it is the purpose of the run.
"""

import re
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.intervals import EMPTY, Spans, subtract, union
from tb_bottleneck.trace.forward_links import BACKWARD
from tb_bottleneck.trace.frames import FrameOwner, frame_owner
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows, Table, by_thread, column
from tb_bottleneck.trace.trace import Trace

OPTIMIZER, OPTIMIZER_STEP = "Optimizer.", "Optimizer.step#"


def optimizer_time(trace: Trace, prefix: str) -> Spans:
    """Returns the time in which optimizers ran: the time of the annotations whose names start with `prefix`.

    Closures and hooks are excluded. The annotation `Optimizer.step#…` encloses all of `step(closure)`. A closure may
    contain the forward and the backward pass, as with Lightning, and this time does not belong to the optimizer.
    Recorded Python frames show which closures and hooks the step calls. Without frames, a backward pass inside the step
    shows that there is a closure. This closure is assumed to run from the start of the step to the end of the backward
    pass.
    """
    return optimizer_time_of(trace, trace.rows(Kind.ANNOTATION, Kind.CPU_OP), prefix)


def optimizer_time_of(trace: Trace, rows: Rows, prefix: str) -> Spans:
    """Returns the same as optimizer_time, but only for the annotations in `rows` (event rows)."""
    events = trace.events
    rows = rows[name_matches(trace.names, events.name[rows], lambda name: name.startswith(prefix))]
    steps = rows[name_matches(trace.names, events.name[rows], lambda name: name.startswith(OPTIMIZER_STEP))]
    others = rows[~np.isin(rows, steps)]
    own = subtract(union(events.start[steps], events.end[steps]), _called(trace, steps))
    return union(np.append(own.starts, events.start[others]), np.append(own.ends, events.end[others]))


@dataclass(frozen=True, eq=False)
class _Frames(Table):
    """The recorded calls of Python functions that are defined in a file, sorted by start."""

    row: Ints = column("row of events", "the frame")
    is_foreign: Bools = column("flag", "True if it is of the user or of an installed package")
    is_step: Bools = column("flag", "True if the function is called step")


def _called(trace: Trace, steps: Rows) -> Spans:
    """Returns the time of the closures and hooks that run in `steps`, the event rows of optimizer-step annotations."""
    if not len(steps):
        return EMPTY
    events, frames = trace.events, _frames(trace)
    backward = trace.rows(Kind.CPU_OP)
    backward = backward[name_matches(trace.names, events.name[backward], lambda name: name.startswith(BACKWARD))]
    backward_ends = np.sort(events.end[backward])
    frames_of = by_thread(np.arange(len(frames)), events.thread[frames.row])
    begins, ends = [], []
    for thread, own in by_thread(steps, events.thread).items():
        inside = frames.take(frames_of.get(thread, slice(0)))
        inside = inside.take(union(events.start[own], events.end[own]).contains(events.start[inside.row]))
        called = inside.row[_are_callbacks(trace, inside, events.start[backward])]
        closures = own[_counts(events.start[inside.row], events.start[own], events.end[own]) == 0]
        begins += [events.start[called], events.start[closures]]
        ends += [events.end[called], _last_end(events.start[closures], events.end[closures], backward_ends)]
    return union(np.concatenate(begins), np.concatenate(ends))


def _frames(trace: Trace) -> _Frames:
    rows, names = trace.rows(Kind.PYTHON), trace.events.name
    rows = rows[name_matches(trace.names, names[rows], lambda name: frame_owner(name) is not FrameOwner.NONE)]
    is_step = name_matches(trace.names, names[rows], lambda name: name.endswith("): step"))
    return _Frames(rows, name_matches(trace.names, names[rows], _is_foreign), is_step)


def _are_callbacks(trace: Trace, frames: _Frames, backward: Ints) -> Bools:
    """Returns a mask of `frames`: True for frames that are closures or hooks, or that run in a closure or hook.

    `backward` has the sorted start times (ns) of the operators of backward passes. Functions of the optimizer itself do
    not count. These are all functions of torch and Python, and all functions that a `step` outside torch calls. But a
    function that such a `step` calls does count if a backward pass runs in it.
    """
    start, end = trace.events.start[frames.row], trace.events.end[frames.row]
    own_step = frames.is_foreign & frames.is_step
    in_step = union(start[own_step], end[own_step]).contains(start)
    has_backward = _counts(backward, start, end) > 0
    return np.asarray(frames.is_foreign & ~frames.is_step & (~in_step | has_backward), np.bool_)


def _is_foreign(frame: str) -> bool:
    return frame_owner(frame) in (FrameOwner.USER, FrameOwner.PACKAGE)


def _counts(times: Ints, begin: Ints, end: Ints) -> Ints:
    """Returns for each interval [begin[i], end[i]) the number of the sorted `times` inside it."""
    return np.asarray(np.searchsorted(times, end, side="left") - np.searchsorted(times, begin, side="left"), np.int64)


def _last_end(begin: Ints, end: Ints, ends: Ints) -> Ints:
    """Returns for each interval (begin[i], end[i]] the last of the sorted `ends` inside it, or begin[i] if none is."""
    last = np.searchsorted(ends, end, side="right") - 1
    if not len(ends):
        return begin
    return np.asarray(np.where(last >= 0, np.maximum(ends[np.maximum(last, 0)], begin), begin), np.int64)


# Autograd's nodes, including compiled ones, and the optimizer's annotation (torch/csrc/autograd/engine.cpp,
# torch/optim/optimizer.py).
_BACKWARD_NAMES = re.compile(r"^autograd::engine::evaluate_function|[A-Za-z]Backward\d*$")
_OPTIMIZER = "Optimizer."
# Layers of torch.nn: operators that programs without a model do not call.
_LAYER_NAMES = re.compile(
    r"^aten::(?:linear|conv\w*|embedding\w*|layer_norm|batch_norm|group_norm|lstm|gru|rnn_\w+|relu_?|gelu|silu_?|addmm|"
    r"max_pool\w*|scaled_dot_product_attention|multi_head_attention_forward)$|^nn\.Module: |^CompiledFunction$"
)


def has_training(trace: Trace) -> bool:
    """Returns True if a backward pass or an optimizer was recorded."""
    return any(map(is_training_name, trace.names))


def has_backward(trace: Trace) -> bool:
    """Returns True if a backward pass was recorded. An optimizer step alone does not count."""
    return any(_BACKWARD_NAMES.search(name) is not None for name in trace.names)


def has_model(trace: Trace) -> bool:
    """Returns True if a training or a layer of a model was recorded, and False for other programs that use torch."""
    return has_training(trace) or any(_LAYER_NAMES.search(name) is not None for name in trace.names)


def is_training_name(name: str) -> bool:
    """Returns True if `name` is the name of an operator of a backward pass, or of an annotation of an optimizer."""
    return name.startswith(_OPTIMIZER) or _BACKWARD_NAMES.search(name) is not None
