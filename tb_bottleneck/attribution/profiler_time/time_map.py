"""A map that removes time from recorded times, and its use on a trace and its steps."""

from dataclasses import replace

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Floats, Ints
from tb_bottleneck.trace.trace import Trace

# Number of times that are mapped at once. Temporary arrays for all events of a recording take too much memory.
_PART = 1 << 16


class TimeMap(Record, frozen=True, eq=False):
    """Removes a part of the time in each of several sorted, disjoint spans, so that all later times become earlier.

    `knots` has the start and the end of each span in turn, in ns. `removed` has for each element of `knots` the total
    time in ns that is removed before it. If the time removed from a span is negative, the span becomes longer. The map
    keeps the order of times.
    """

    knots: Ints
    removed: Floats

    def without(self, times: Ints) -> Ints:
        """Converts recorded times to times after the removal, in ns."""
        if not len(self.knots):
            return np.asarray(times[:], np.int64)
        base = int(self.knots[0])  # in floating point, times since 1970 have no nanoseconds
        places = (self.knots - base).astype(np.float64)
        shifted = np.empty(len(times), np.int64)
        for first in range(0, len(times), _PART):
            part = np.asarray(times[first : first + _PART], np.int64)
            shift = np.interp((part - base).astype(np.float64), places, self.removed)
            shifted[first : first + _PART] = part - np.rint(shift).astype(np.int64)
        return shifted


def time_map(begin: Ints, end: Ints, removed: Floats) -> TimeMap:
    """Returns the map that removes removed[i] ns from each span [begin[i], end[i]).

    The spans are sorted and disjoint. Each span must be longer than the time removed from it.
    """
    after = np.cumsum(removed)
    knots = np.stack([begin, end], axis=1).ravel()
    return TimeMap(knots, np.stack([after - removed, after], axis=1).ravel())


def mapped_trace(trace: Trace, mapped: TimeMap) -> Trace:
    """Returns a copy of `trace` with the map `mapped` applied to the times of events, memory events and counters."""
    events = trace.events
    start = mapped.without(events.start)
    duration = packed(mapped.without(events.end) - start)
    memory = replace(trace.memory, time=mapped.without(trace.memory.time))
    counters = replace(trace.counters, time=mapped.without(trace.counters.time))
    return replace(trace, events=replace(events, start=start, duration=duration), memory=memory, counters=counters)


def mapped_steps(steps: Steps, mapped: TimeMap) -> Steps:
    """Returns `steps` with the map `mapped` applied to their times."""
    return Steps(steps.basis, mapped.without(steps.edges), mapped.without(steps.host), steps.damaged, steps.others)
