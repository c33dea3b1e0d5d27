"""A trace with the derived data that several requests of the user need, and a cache of the traces used last."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.device_attribution import ops_by_regime
from tb_bottleneck.attribution.profiler_time.removal import without_profiler_time
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.drilldown.lanes import KEY, Lanes, lanes_of
from tb_bottleneck.drilldown.tree.host_rows import HostRows, host_rows_of
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace, load


@dataclass(frozen=True, eq=False)
class InspectedTrace:
    """A trace with the data derived from it for the detail views. Each property is computed on first use and cached."""

    loaded: Trace

    @cached_property
    def recording(self) -> Recording | None:
        """The trace with its window (the steps that the report is about), without the profiler's own time.

        None if the trace has no window.
        """
        steps = find_steps(self.loaded)
        return without_profiler_time(Recording(self.loaded, steps)) if steps is not None else None

    @property
    def trace(self) -> Trace:
        """The trace without the profiler's own time, or the loaded trace if `recording` is None."""
        return self.loaded if self.recording is None else self.recording.trace

    @cached_property
    def host_rows(self) -> HostRows:
        """The nesting of the events on the host."""
        return host_rows_of(self.trace, self.recording.host.main_thread if self.recording is not None else None)

    @cached_property
    def lanes(self) -> Lanes:
        """The rows (lanes) of the timeline."""
        return lanes_of(self.trace, self.recording, self.device_keys)

    @cached_property
    def device_keys(self) -> Ints:
        """For each operation in `trace.all_device_ops` an index into lanes.KEYS, which decides the colour on the
        timeline."""
        trace, ops = self.trace, self.trace.all_device_ops
        keys = np.full(len(ops), KEY[Regime.UNEXPLAINED], np.int64)
        if self.recording is None or not len(ops):
            return keys
        # Kernel bounds exist for the trace's own device only; operations of other devices keep `unexplained`.
        own_device = np.flatnonzero(ops.device == trace.device_index)
        for regime, rows in ops_by_regime(trace.device_ops, self.recording.kernel_bounds).items():
            keys[own_device[rows]] = KEY[regime]
        return keys

    @cached_property
    def span(self) -> tuple[int, int]:
        """Start and end of all recorded events, in ns; (0, 0) if there are none."""
        events = self.trace.events
        if not len(events):
            return 0, 0
        return int(events.start[0]), int(events.end[:].max())


def load_inspected(path: str, progress: Callable[[int, int], None] | None = None) -> InspectedTrace:
    """Reads the trace at `path`. Raises NotFound and Unreadable as trace.load does."""
    return InspectedTrace(load(path, progress))


Progress = Callable[[int, int], None]

MAX_CACHED_EVENTS = 3_000_000
"""Largest number of events of all cached traces together. One trace is always kept, even if it is larger. An event
takes about 500 bytes of memory, including derived data."""


class TraceCache:
    """Caches the traces that were used last, so that their files are not read again. Not thread-safe."""

    def __init__(self) -> None:
        self._traces: OrderedDict[tuple[str, int], InspectedTrace] = OrderedDict()

    def get(self, path: str, mtime_ns: int, progress: Progress | None) -> InspectedTrace:
        """Returns the trace at `path` with the modification time `mtime_ns` (ns since 1970).

        Reads the file if the trace is not in the cache. Meanwhile, `progress` is called with the number of bytes read
        so far and the size of the file in bytes.
        """
        key = (path, mtime_ns)
        if key not in self._traces:
            self._traces[key] = InspectedTrace(load(path, progress))
        self._traces.move_to_end(key)
        while len(self._traces) > 1 and self._events() > MAX_CACHED_EVENTS:
            self._traces.popitem(last=False)
        return self._traces[key]

    def _events(self) -> int:
        return sum(len(inspected.trace.events) for inspected in self._traces.values())
