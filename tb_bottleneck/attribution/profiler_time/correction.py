"""What was removed from the times of a recording."""

from tb_bottleneck.attribution.profiler_time.costs import ProfilerCosts
from tb_bottleneck.attribution.profiler_time.time_map import TimeMap
from tb_bottleneck.record import Record


class Correction(Record, frozen=True, eq=False):
    """The profiler's own time in a recording.

    `position` is the one in the ranges of the costs, -1 to 1, and `pace` the part of what is left, at most 1, that all
    work takes without the profiler. `solved` is True if both follow from the step time without the profiler.
    """

    time_map: TimeMap
    costs: ProfilerCosts
    position: float
    pace: float
    solved: bool
