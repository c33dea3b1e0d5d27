"""One recording as the evidence is taken from it: the trace, its window, and what several answers share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.device_busy import ops_by_regime
from tb_bottleneck.attribution.owned_spans import OwnedSpans
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.colour_keys import KEY
from tb_bottleneck.drilldown.lanes import Lanes, lanes_of
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class InspectedTrace:
    """A trace under inspection. Everything is computed on first use and kept."""

    trace: Trace

    @cached_property
    def recording(self) -> Recording | None:
        """The trace with its window; None where nothing happened in it."""
        steps = find_steps(self.trace)
        return Recording(self.trace, steps) if steps is not None else None

    @cached_property
    def owned_spans(self) -> OwnedSpans:
        """The time of the window, split by owner; empty if there is no window."""
        return self.recording.owned_spans if self.recording is not None else OwnedSpans.none()

    @cached_property
    def lanes(self) -> Lanes:
        """The rows of the timeline."""
        return lanes_of(self.trace, self.recording, self.owned_spans, self.device_keys)

    @cached_property
    def device_keys(self) -> Ints:
        """A key for each device operation of every device, in the order of `trace.all_device_ops`."""
        trace, ops = self.trace, self.trace.all_device_ops
        keys = np.full(len(ops), KEY[Regime.UNEXPLAINED], np.int64)
        if self.recording is None or not len(ops):
            return keys
        # Another device's kernels have no roofs of their own here: their names tell what they are.
        mine = np.flatnonzero(ops.device == trace.device_index)
        for owner, rows in ops_by_regime(trace.device_ops, self.recording.kernel_bounds, trace.multiprocessors).items():
            keys[mine[rows]] = KEY[owner]
        return keys

    @cached_property
    def span(self) -> tuple[int, int]:
        """Begin and end of everything that was recorded, in ns; (0, 0) where nothing was."""
        events = self.trace.events
        if not len(events):
            return 0, 0
        return int(events.start[0]), int(events.end.max())
