"""What recording itself costs a step, where the run's own step time without the profiler was recorded with it."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.process_facts import positive

# A step that takes longer without the profiler, or less than a fifth, was not one of these: the costliest options were
# measured to double a step's time, and a step of many small operators may fare worse.
LONGEST, SHORTEST = 1.25, 0.2
# A recorded row has not been seen to cost a step more: 0.3 to 3.2 us for each operator or frame in steps of up to 9,000
# (torch 2.13, the recordings of demo/). A call's price is six times its usual one, as the dearest operator's is. What a
# step takes longer than that is no cost of recording: two runs differ, and so do the steps of one.
MOST_NS = {Kind.CPU_OP: 3_300, Kind.PYTHON: 3_300, Kind.CALL: 12_000}
# The profiler's own cost per recorded event, torch 2.13: 0.23 to 0.55 us per operator by options, 0.28 us per Python
# frame (measured on an AMD EPYC machine); per runtime call about 2 us (recalled from CUPTI's documentation, not
# measured here).
NS_PER_OPERATOR, NS_PER_FRAME, NS_PER_CALL = 400, 280, 2_000
_UNKNOWN = Missing("the step time without the profiler was not recorded; the monitor adds it to the trace")


def profiler_overhead(recording: Recording) -> Measure | Missing:
    """Share of the step that recording it costs: 1 - step time without the profiler / step time with it.

    At most what the step's recorded rows can have cost.
    """
    without = unprofiled_step(recording)
    if isinstance(without, Missing):
        return without
    step = float(np.median(recording.steps.durations))
    share = min(1 - without.value / step, _most(recording) / step)
    return Measure(max(share, 0.0), "share", "step", len(recording.steps), source="both")


def _most(recording: Recording) -> float:
    """What recording a step can have cost, in ns."""
    kinds = recording.trace.events.kind[recording.in_window(recording.trace.events.start)]
    return sum(most * int((kinds == kind).sum()) for kind, most in MOST_NS.items()) / len(recording.steps)


def unprofiled_step(recording: Recording) -> Measure | Missing:
    """The step time without the profiler, as the training process measured it."""
    told = positive(recording.trace.header.context.get("unprofiled_step_ns"))
    if recording.steps.basis == "whole" or told is None:
        return _UNKNOWN
    step = float(np.median(recording.steps.durations))
    if not SHORTEST * step <= told <= LONGEST * step:
        return Missing("the step time without the profiler that was recorded is not one of these steps")
    return Measure(told, "ns", "step", source="context")
