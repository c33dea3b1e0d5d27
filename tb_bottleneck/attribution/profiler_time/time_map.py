"""The profiler's own time in a recording: the map of recorded times to those without it, and what it follows from."""

import numpy as np

from tb_bottleneck.attribution.profiler_time.costs import ProfilerCosts
from tb_bottleneck.record import Record
from tb_bottleneck.trace.table import Floats, Ints

# Times that are mapped at once: all events of a recording take more memory with each temporary array.
_PART = 1 << 16


class TimeMap(Record, frozen=True, eq=False):
    """Removes a part of the time in each of some sorted, disjoint spans; all later times move forward by it.

    `knots` are the spans' starts and ends in turn, in ns; `removed` is the time in ns that is removed before each. The
    order of any two times stays the same.
    """

    knots: Ints
    removed: Floats

    def without(self, times: Ints) -> Ints:
        """Returns where recorded times are without the removed time, in ns."""
        return self._shifted(times, self.knots, -1)

    def recorded(self, times: Ints) -> Ints:
        """Returns the recorded times, in ns, of times without the removed time."""
        return self._shifted(times, self.knots - np.rint(self.removed).astype(np.int64), 1)

    def _shifted(self, times: Ints, knots: Ints, sign: int) -> Ints:
        if not len(knots):
            return np.asarray(times[:], np.int64)
        base = int(knots[0])  # in floating point, times since 1970 have no nanoseconds
        places = (knots - base).astype(np.float64)
        shifted = np.empty(len(times), np.int64)
        for first in range(0, len(times), _PART):
            part = np.asarray(times[first : first + _PART], np.int64)
            shift = np.interp((part - base).astype(np.float64), places, self.removed)
            shifted[first : first + _PART] = part + sign * np.rint(shift).astype(np.int64)
        return shifted


class Correction(Record, frozen=True, eq=False):
    """What is removed from a recording. `solved` is True if it follows from times without the profiler."""

    time_map: TimeMap
    costs: ProfilerCosts
    solved: bool


def time_map(begin: Ints, end: Ints, removed: Floats) -> TimeMap:
    """Returns the map that removes `removed[i]` ns, less than its length, from each span [begin[i], end[i])."""
    after = np.cumsum(removed)
    knots = np.stack([begin, end], axis=1).ravel()
    return TimeMap(knots, np.stack([after - removed, after], axis=1).ravel())
