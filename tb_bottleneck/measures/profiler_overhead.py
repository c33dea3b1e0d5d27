"""Measures of the profiler's overhead per step.

The overhead is known if the step time without the profiler was recorded with the trace.
"""

from tb_bottleneck.attribution.profiler_time.dispatch_time import max_overhead
from tb_bottleneck.attribution.profiler_time.logged_steps import logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing

# If the unprofiled step time is outside these factors of the recorded step time, it belongs to other steps. The
# costliest options of the profiler were measured to double a step's time, and a step of many small operators may be
# slowed more.
LONGEST_UNPROFILED, SHORTEST_UNPROFILED = 1.25, 0.2
# The profiler's usual overhead per recorded event, torch 2.13: 0.23 to 0.55 us per operator depending on the options,
# 0.28 us per Python frame (measured on an AMD EPYC machine); about 2 us per runtime call (recalled from CUPTI's
# documentation, not measured here).
NS_PER_OPERATOR, NS_PER_FRAME, NS_PER_CALL = 400, 280, 2_000
# A choice, without an outside source: in four of 38 recordings of the demo, the step times differ by a factor of 1.55
# to 10.9 beyond the overhead, in the others by a factor of less than 1.3. All come from a machine with other programs:
# nothing proves that the four were disturbed.
ATYPICAL_FROM = 1.5
_UNKNOWN = Missing("the step time without the profiler was not recorded; the monitor adds it to the trace")


def atypical_ratio(recording: Recording) -> float | None:
    """Returns the ratio: recorded step time / step time without the profiler. Returns None if the profiler's overhead
    can explain the difference of the two times, or if the step time without the profiler was not recorded."""
    logged = logged_unprofiled(recording)
    if logged is None:
        return None
    step = logged.average(recording.steps.durations)
    too_slow = step - max_overhead(recording) > ATYPICAL_FROM * logged.step
    return step / logged.step if too_slow or logged.step > ATYPICAL_FROM * step else None


def profiler_overhead(recording: Recording) -> Measure | Missing:
    """Share of the step that is profiler overhead: 1 - step time without the profiler / step time with it.

    The share is limited to the overhead that recording the events of a step can cause (MAX_OVERHEAD_NS).
    """
    without, logged = unprofiled_step(recording), logged_unprofiled(recording)
    if logged is None:
        return _UNKNOWN
    if isinstance(without, Missing):
        return without
    step = logged.average(recording.steps.durations)
    share = min(1 - without.value / step, max_overhead(recording) / step)
    return Measure(max(share, 0.0), "share", "step", len(recording.steps), source="both")


def overhead_left(recording: Recording) -> Measure | Missing:
    """`profiler_overhead` as evidence: missing if it is none, or if the profiler's time is taken out of all times."""
    if recording.correction is not None:
        return Missing("the profiler's own time is taken out of all times")
    overhead = profiler_overhead(recording)
    if isinstance(overhead, Measure) and overhead.value < 0.005:
        return Missing("the recorded steps take no longer than the others")
    return overhead


def unprofiled_step(recording: Recording) -> Measure | Missing:
    """The step time without the profiler (ns), as the training process measured it before the recording.

    The value is the median of the measured steps, or the mean if the steps are uneven. Missing if it was not recorded,
    or if it differs too much from the recorded step time.
    """
    logged = logged_unprofiled(recording)
    if logged is None:
        return _UNKNOWN
    step = logged.average(recording.steps.durations)
    if not SHORTEST_UNPROFILED * step <= logged.step <= LONGEST_UNPROFILED * step:
        return Missing("the recorded step time without the profiler is implausible for these steps")
    return Measure(logged.step, "ns", "step", source="context")
