"""What recording itself costs a step, where the run's own step time without the profiler was recorded with it."""

import numpy as np

from tb_bottleneck.measures.measure import Measure, Missing
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.measures.told import positive
from tb_bottleneck.trace.health import Defect

# A step that takes longer without the profiler, or less than a fifth, was not one of these: the costliest options were
# measured to double a step's time, and a step of many small operators may fare worse.
LONGEST, SHORTEST = 1.25, 0.2
# From which measured overhead on times of the host are not taken at face value.
INFLATED_SHARE = 0.10
_UNKNOWN = Missing("the step time without the profiler was not recorded; the monitor adds it to the trace")


def profiler_overhead(recording: Recording) -> Measure | Missing:
    """Share of the step that recording it costs: 1 - step time without the profiler / step time with it."""
    without = unprofiled_step(recording)
    if isinstance(without, Missing):
        return without
    share = 1 - without.value / float(np.median(recording.steps.durations))
    return Measure(max(share, 0.0), "share", "step", len(recording.steps), witness="both")


def unprofiled_step(recording: Recording) -> Measure | Missing:
    """The step time without the profiler, as the training process measured it."""
    told = positive(recording.trace.header.context.get("unprofiled_step_ns"))
    if recording.steps.basis == "whole" or told is None:
        return _UNKNOWN
    step = float(np.median(recording.steps.durations))
    if not SHORTEST * step <= told <= LONGEST * step:
        return Missing("the step time without the profiler that was recorded is not one of these steps")
    return Measure(told, "ns", "step", witness="context")


def overhead_defect(recording: Recording) -> Defect | None:
    """The defect `profiler_overhead`, None where it is not known or does not matter."""
    overhead, without = profiler_overhead(recording), unprofiled_step(recording)
    if isinstance(overhead, Missing) or isinstance(without, Missing) or overhead.value <= INFLATED_SHARE:
        return None
    return Defect("profiler_overhead", False, {"share": overhead.value, "pause": without.value})
