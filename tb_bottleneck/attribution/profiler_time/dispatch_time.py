"""Removes from a recording of a device the time by which the profiler delays launches.

While a profiler records, torch dispatches operators more slowly. A device that is busy without the profiler then waits
between its kernels: on an H100, a transformer whose steps kept the device busy waited for a tenth of a recorded step.
If the step time without the profiler is known, the same share is removed from all of this idle time, so that a typical
step takes as long as without the profiler. Kernels keep their times.

The dispatching that runs while the device is busy stays as recorded. Predictions scale it (replay/host_scale.py), and
start from the recording before this removal.
"""

import numpy as np

from tb_bottleneck.attribution.profiler_time.costs import Correction
from tb_bottleneck.attribution.profiler_time.host_pieces import LEAST_LEFT
from tb_bottleneck.attribution.profiler_time.logged_steps import MAX_DIFFERENCE, logged_unprofiled
from tb_bottleneck.attribution.profiler_time.time_map import mapped_steps, mapped_trace, time_map
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import replace
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.trace.kinds import Kind

# The highest overhead per recorded row. For each operator or frame, 0.3 to 3.2 us were measured in steps of up to 9,000
# rows (torch 2.13, the recordings of demo/). For a call, the limit is six times the usual overhead, as for the
# costliest operator. Time beyond these limits is not overhead: two runs differ, and so do the steps of one run.
MAX_OVERHEAD_NS = {Kind.CPU_OP: 3_300, Kind.PYTHON: 3_300, Kind.CALL: 12_000}
MIN_REMOVED = 0.005
"""Share of the window. Removing less makes no difference to any share that a report shows."""


def without_dispatch_time(recording: Recording) -> Recording:
    """Returns a recording without the time by which the profiler delayed launches. Returns `recording` itself if that
    time is unknown or small, or if several devices worked: the others may compute while one of them waits."""
    logged = logged_unprofiled(recording)
    if logged is None or len(np.unique(recording.trace.all_device_ops.device)) > 1:
        return recording
    steps, idle = recording.steps, recording.owned_spans.of(Regime.LAUNCH)
    waits = logged.average(idle.covered(steps.edges[:-1], steps.edges[1:]))
    longer = logged.average(steps.durations) - logged.step
    share = min(min(longer, max_overhead(recording)) / max(waits, 1.0), 1.0 - LEAST_LEFT)
    removed = np.asarray(share * (idle.ends - idle.starts), np.float64)
    if removed.sum() < MIN_REMOVED * recording.account.window:
        return recording
    mapped = time_map(idle.starts, idle.ends, removed)
    solved = longer - share * waits <= MAX_DIFFERENCE * logged.step
    earlier = recording.correction or Correction(None, True, 0.0, 0.0)
    correction = replace(earlier, solved=solved, removed=earlier.removed + float(removed.sum()), dispatch=True)
    return Recording(
        mapped_trace(recording.trace, mapped),
        mapped_steps(steps, mapped),
        correction,
        recording.as_recorded,
        recording,
    )


def max_overhead(recording: Recording) -> float:
    """Returns the highest time (ns) that recording the events of one step can have added to the step."""
    events = recording.trace.events
    inside = recording.in_window(events.start)
    counts = {kind: np.count_nonzero(inside & (events.kind == kind)) for kind in MAX_OVERHEAD_NS}
    return sum(ns * counts[kind] for kind, ns in MAX_OVERHEAD_NS.items()) / len(recording.steps)
