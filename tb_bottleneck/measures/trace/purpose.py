"""Measures of what was recorded: steps or one stretch of work, training or inference."""

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.attribution.training_detection import has_backward, has_training
from tb_bottleneck.measure import Measure, Missing


def training_recorded(recording: Recording) -> Measure | Missing:
    """1 if a backward pass or an optimizer was recorded; otherwise the recording shows an inference."""
    return Measure(1.0, "count") if has_training(recording.trace) else Missing("no backward pass was recorded")


def backward_recorded(recording: Recording) -> Measure | Missing:
    """1 if a backward pass was recorded; otherwise little of the model is known."""
    return Measure(1.0, "count") if has_backward(recording.trace) else Missing("no backward pass was recorded")


def steps_found(recording: Recording) -> Measure | Missing:
    """The number of steps, if they are marked or were found from repetition."""
    if recording.steps.basis == "whole":
        return Missing("the recording has no steps")
    return Measure(float(len(recording.steps)), "count", "window", len(recording.steps))
