"""Measures of the kind of work that a trace shows: with or without steps, training or inference, one operator only."""

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_backward, has_training
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.trace.kernel_names import cut

# If one operator takes this share of the device's time, other operators do not matter.
ONE_OPERATOR = 0.95


def training_recorded(recording: Recording) -> Measure | Missing:
    """1 if a backward pass or an optimizer was recorded (count); missing otherwise, as for inference."""
    return Measure(1.0, "count") if has_training(recording.trace) else Missing("no backward pass was recorded")


def backward_recorded(recording: Recording) -> Measure | Missing:
    """1 if a backward pass was recorded (count); missing otherwise."""
    return Measure(1.0, "count") if has_backward(recording.trace) else Missing("no backward pass was recorded")


def steps_found(recording: Recording) -> Measure | Missing:
    """The number of steps if the recording has `ProfilerStep` annotations, or if steps were found from repetition;
    otherwise missing."""
    if recording.steps.basis == "whole":
        return Missing("the recording has no steps")
    return Measure(float(len(recording.steps)), "count", "window", len(recording.steps))


def only_operator(recording: Recording) -> Measure | Missing:
    """The name of one operator, as text, if its calls with equal shapes take at least ONE_OPERATOR of the device's
    time. Missing otherwise, for a training, and without recorded shapes."""
    trace, ops = recording.trace, recording.trace.device_ops
    called, operator = trace.calling_operators
    own = np.flatnonzero(ops.launched & recording.in_window(ops.start))
    own = own[called[ops.call[own]]] if len(own) else own
    several = Missing("the recording shows several operators")
    if not len(own) or has_training(trace):
        return several
    rows, length = operator[ops.call[own]], (ops.end - ops.start)[own].astype(np.float64)
    kinds, group = np.unique(
        np.stack((trace.events.name[rows], trace.events.signature[rows])), axis=1, return_inverse=True
    )
    spent = np.bincount(group.ravel(), length)
    name, signature = kinds[:, spent.argmax()].tolist()
    alone = spent.max() >= ONE_OPERATOR * float((ops.end - ops.start)[recording.in_window(ops.start)].sum())
    # A name without "::" is no operator: a compiled region is a whole model. Without shapes, layers of different sizes
    # look alike.
    return (
        text_measure(cut(trace.names[name]), len(own)) if alone and signature and "::" in trace.names[name] else several
    )
