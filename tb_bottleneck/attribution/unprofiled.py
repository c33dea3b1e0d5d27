"""The steps without a profiler that the process of a trace timed before it recorded."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.trace.process_facts import positive

# Beyond this factor, a logged step time has another unit, or is of another kind of step.
MAX_STEP_RATIO = 100
MAX_LOGGED_TIMES, MAX_STEPS = 64, 2**31 - 1  # more of them are not from the monitor
SHORTEST_LOGGED, LONGEST_LOGGED = 1.0, 1e18  # ns, about 30 years: beyond them, a number is not the time of a step


@dataclass(frozen=True)
class LoggedSteps:
    """Unprofiled steps as the training process measured them, in ns. `steps` is 0 and `times` empty if not logged.

    `loader` is the median time in the loader, None if not logged.
    """

    median: float
    steps: int = 0
    times: tuple[float, ...] = ()
    loader: float | None = None


def logged_unprofiled(recording: Recording) -> LoggedSteps | None:
    """Returns the unprofiled steps that the training process logged; None if it did not, or they cannot be right."""
    context = recording.trace.header.context
    median = positive(context.get("unprofiled_step_ns"))
    if recording.steps.basis == "whole" or median is None:
        return None
    step = float(np.median(recording.steps.durations))
    if not step / MAX_STEP_RATIO <= median <= step * MAX_STEP_RATIO:
        return None
    logged = context.get("unprofiled_step_times_ns")
    times = [positive(each) for each in logged[:MAX_LOGGED_TIMES]] if isinstance(logged, list) else []
    known = tuple(time for time in times if time is not None and SHORTEST_LOGGED <= time <= LONGEST_LOGGED)
    steps = int(positive(context.get("unprofiled_steps")) or 0)
    loader = positive(context.get("unprofiled_loader_ns"))
    return LoggedSteps(
        median,
        min(steps, MAX_STEPS),
        known if len(known) == len(times) else (),
        loader if loader is not None and loader < median else None,
    )
