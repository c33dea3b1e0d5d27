"""What was removed from the times of a recording."""

from tb_bottleneck.attribution.profiler_time.costs import ProfilerCosts
from tb_bottleneck.attribution.profiler_time.time_map import TimeMap
from tb_bottleneck.record import Record


class Correction(Record, frozen=True, eq=False):
    """The profiler's own time in a recording. `solved` is True if it follows from times without the profiler."""

    time_map: TimeMap
    costs: ProfilerCosts
    solved: bool
