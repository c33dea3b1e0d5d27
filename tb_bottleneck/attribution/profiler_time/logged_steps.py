"""Reads the times of steps that the training process measured before the recording began, without the profiler."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import clip, union
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.trace.table import Bools, Floats, Ints

OPTIMIZER = "optimizer"
PARTS = ("loader", "backward", OPTIMIZER)
"""Parts of a step whose time the training process logs: `unprofiled_loader_ns` and so on."""

# If the logged and the recorded step time differ by more than this factor, the logged time has another unit, or is the
# time of another kind of step.
MAX_STEP_RATIO = 100
MAX_DIFFERENCE = 0.05
"""Largest relative difference between a corrected step and the logged step, if the correction explains it. A choice."""
MAX_LOGGED_TIMES, MAX_STEPS = 64, 2**31 - 1  # the monitor never logs more
UNEVEN_AT, UNEVEN_FROM = (0.2, 0.8), 2.0
"""Steps are uneven if these quantiles of the step times differ by more than this factor, for example because workers
deliver batches in bursts, or every third step writes a checkpoint. A choice."""
MAJORITY = 0.6
"""Share of the steps of an uneven run that has to be short, or long, in the trace and in the log, for a comparison of
only these steps. If there are about as many short steps as long ones, their means are compared. A choice."""
SHORTEST_OF_BUSY, MIN_KEPT = 0.8, 3
"""A logged step that is shorter than this share of the device's busy time per step ended on the host, but not on the
device. The share is a choice. On an H200, 17 logged steps took a tenth of the busy time per step, and the 3 steps after
them took all of it. At least MIN_KEPT steps that are long enough are needed for a measurement."""
SETTLED_FROM = 1.25
"""Smallest ratio of the shortest early step and the longest late one for a run that became faster. A choice: on an
H200, 13 logged steps took at least 4.08 ms, and the 7 steps after them at most 3.04 ms."""
SHORTEST_LOGGED, LONGEST_LOGGED = 1.0, 1e18  # ns, about 30 years: beyond them, a number is not the time of a step


@dataclass(frozen=True)
class LoggedSteps:
    """Steps without the profiler, as the training process measured them. All times are in ns.

    `step` is the median of the step times or, if `uneven` is True, the mean. `steps` is the number of steps, 0 if not
    logged. `times` are the times of single steps, empty if not logged. `parts` maps the names in PARTS that were logged
    to the median time of this part per step. The sum of these times is less than `step`. If `compared` is not None,
    `step` is the median of the more frequent kind of steps, the short or the long ones, and `compared` is a mask of
    the recorded steps of this kind.
    """

    step: float
    steps: int = 0
    times: tuple[float, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    uneven: bool = False
    compared: Bools | None = None

    def average(self, durations: Ints | Floats) -> float:
        """Returns the average of `durations` (ns) of the recorded steps, computed as for `step`.

        This is the median, or the mean if `uneven` is True.
        """
        chosen = durations if self.compared is None else durations[self.compared]
        return float((np.mean if self.uneven else np.median)(chosen))


def logged_unprofiled(recording: Recording) -> LoggedSteps | None:
    """Returns the steps that the training process logged; None if there are none or their times are implausible.

    The process measures time on the host. If a run reads nothing from the device, launches queue up at first, and a
    step takes less time on the host than on the device. Only steps after the last of these short steps count.
    """
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
    shortest = SHORTEST_OF_BUSY * _busy_per_step(recording)
    caught_up = tuple(takewhile(lambda time: time >= shortest, reversed(known)))
    if len(caught_up) < len(known):
        if len(caught_up) >= MIN_KEPT:
            known = caught_up[::-1]
            median, steps, times = float(np.median(known)), len(known), list(known)
        elif median < shortest:
            return None
    known = known if len(known) == len(times) else ()
    logged_times, settled = known, _settled(known)
    if len(settled) < len(known):
        known, median, steps = settled, float(np.median(settled)), len(settled)
    compared = None
    if known and np.quantile(known, UNEVEN_AT[1]) > UNEVEN_FROM * np.quantile(known, UNEVEN_AT[0]):
        kind = _more_frequent(np.array(known), recording.steps.durations)
        if kind is None:
            return LoggedSteps(float(np.mean(known)), min(steps, MAX_STEPS), known, uneven=True)
        median, compared = kind
    if recording.trace.stackless is not None:  # the profiler slowed these steps, too
        median = min(median, float(np.diff(recording.trace.stackless.edges).max()))
    parts = {part: ns for part in PARTS if (ns := positive(context.get(f"unprofiled_{part}_ns"))) is not None}
    # The parts were logged as medians over all steps.
    parts = parts if sum(parts.values()) < median and len(settled) == len(logged_times) else {}
    return LoggedSteps(median, min(steps, MAX_STEPS), known, parts, compared=compared)


def filling_steps(recording: Recording) -> tuple[float, ...]:
    """Returns the times (ns) of logged steps in which the host only filled the queue of launches, without the last one,
    in which the queue became full; empty if there are less than two."""
    logged = recording.trace.header.context.get("unprofiled_step_times_ns")
    times = [positive(each) for each in logged[:MAX_LOGGED_TIMES]] if isinstance(logged, list) else []
    shortest = SHORTEST_OF_BUSY * _busy_per_step(recording)
    filling = tuple(takewhile(lambda time: SHORTEST_LOGGED <= time < shortest, (time or 0.0 for time in times)))[:-1]
    return filling if len(filling) > 1 and len(times) - len(filling) > MIN_KEPT else ()


def _settled(times: tuple[float, ...]) -> tuple[float, ...]:
    """Returns the last of `times` (ns) if all earlier ones are longer by the factor SETTLED_FROM: the run became faster
    in these steps, and the recorded ones follow the last of them. Otherwise returns `times`."""
    for at in range(len(times) - MIN_KEPT, 0, -1):
        if min(times[:at]) > SETTLED_FROM * max(times[at:]):
            return times[at:]
    return times


def _more_frequent(logged: Floats, recorded: Ints) -> tuple[float, Bools] | None:
    """Returns the median of the more frequent kind of the uneven `logged` step times, and a mask of this kind in
    `recorded`. None if the kind is not more frequent in both, or if all `recorded` steps are alike. Times are in ns.

    A kind is the short or the long steps, cut at the geometric mean of a short and a long step. The other kind would
    distort a mean: if every third step collects garbage, 2 of 6 recorded steps do, and 6 of 20 logged ones.
    """
    shortest, longest = float(recorded.min()), float(recorded.max())
    if longest <= UNEVEN_FROM * shortest:
        return None
    low, high = np.quantile(logged, UNEVEN_AT)
    long, recorded_long = logged > math.sqrt(low * high), recorded > math.sqrt(shortest * longest)
    if min(long.mean(), recorded_long.mean()) >= MAJORITY:
        return float(np.median(logged[long])), recorded_long
    if max(long.mean(), recorded_long.mean()) <= 1 - MAJORITY:
        return float(np.median(logged[~long])), ~recorded_long
    return None


@memoized
def _busy_per_step(recording: Recording) -> float:
    """Returns the average time per step, in ns, in which the device works. The profiler does not change this time.

    Collectives are left out, because the time of a collective includes waiting for other ranks.
    """
    ops, steps = recording.trace.device_ops, recording.steps
    ops = ops.take(ops.work != Work.COLLECTIVE)
    return clip(union(ops.start, ops.end), steps.begin, steps.end).total() / len(steps)
