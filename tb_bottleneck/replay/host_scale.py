"""Estimates the profiler's overhead: during recording, the host dispatches more slowly than without the profiler.

The scale of dispatching is (dispatch time without the profiler / recorded dispatch time). It is found in one of four
ways:

- solved: if the recording has the step time without the profiler, the scale is chosen such that a step of the replay
  takes as long as this time. The overhead is limited to the largest overhead of the recorded rows;
- hidden: if the host does not limit the steps, the step time does not show the scale, and the usual scale is assumed;
- paced: as hidden, but the telemetry of the run has steps that began when the device had nothing to do. Such a step
  takes as long as the host needs, and the scale is chosen such that the host alone takes as long;
- estimated: if the step time without the profiler is not known, the scale follows from a cost per recorded event.

If the scale is hidden or estimated, the bounds range from the fastest plausible host to the host as recorded.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.base.measure import Measure, Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.profiler_overhead import NS_PER_CALL, NS_PER_FRAME, NS_PER_OPERATOR, profiler_overhead
from tb_bottleneck.replay.host_phases import phase_times
from tb_bottleneck.replay.modified_graph import ModifiedGraph, scale_column
from tb_bottleneck.trace.columns.packed_column import look_up
from tb_bottleneck.trace.kinds import Kind

# Recording slows a dispatching host by a factor of 1.6 to 2.1 (torch 2.13, 80 small layers, every combination of the
# profiler's options against none).
MAX_HOST_SLOWDOWN = 2.1
# On the host of a GPU, this factor was 1.5 to 2.3, with a median of 1.7: 23 trainings and models on an H200, torch
# 2.11, with stacks and without.
SLOWDOWN_BESIDE_GPU = 1.7
# A smaller scale would mean that the profiler slowed the host by more than a factor of five. In this case, something
# else differs.
MIN_HOST_SCALE = 0.2
# If the fastest plausible host shortens the steps by a smaller share, the steps are as long with the profiler as
# without, and do not show the scale. On an H200, a scale solved from a difference of 0.3 % was that of a host five
# times as fast, where the host was twice as fast.
SEEN_FROM = 0.05
NO_SLOWER = 0.02
# A smaller relative difference means that the profiler had no overhead.
NO_OVERHEAD_BELOW = 0.001
BISECTION_ROUNDS = 8
_COST_PER_EVENT = {Kind.CPU_OP: NS_PER_OPERATOR, Kind.PYTHON: NS_PER_FRAME, Kind.CALL: NS_PER_CALL}


class HostScale(Record, frozen=True):
    """The scale of the host: dispatch time without the profiler / recorded dispatch time, from 0 to 1.

    `least` and `most` are the bounds of the `expected` scale. `solved` is True if the scale follows from a measured
    step time without the profiler. `hidden` is True if that time is known but does not depend on the scale, because the
    device limits the steps. `pace` is the time of a step in ns that the host needs alone, from steps that began when
    the device had nothing to do; 0 if there were none. `phases` are the times in ns of parts of such a step, by name.
    """

    expected: float
    least: float
    most: float
    solved: bool
    hidden: bool = False
    pace: float = 0.0
    phases: Mapping[str, float] = {}


def with_host_scale(graph: ModifiedGraph, scale: float) -> ModifiedGraph:
    """Returns the graph with the dispatch time and the call time of the host, without waits, multiplied by `scale`, in
    each phase of the step by as much as is known of it. If the pace of the host is known, its window takes at least as
    long as the host needs alone."""
    if scale != 1.0:
        weights = graph.base.phase_weights
        factor = scale if weights is None else np.minimum(scale * weights, 1.0)
        gap = graph.gap_scaled(Activity.DISPATCH, factor)
        graph = graph.with_items(gap=gap, cost=scale_column(graph.items.cost, factor))
    return replace(graph, paced=True) if graph.base.host_pace else graph


def host_scale_of(graph: ModifiedGraph) -> HostScale:
    """Returns the scale of the host for an unmodified `graph` (see the module docstring).

    For CPU runs, the scale is 1 if the profiler's time is taken out of all times, since other programs slow operators
    and Python alike, or if the overhead was not measured, since dispatching cannot be separated from other work.
    """
    recording = graph.base.recording
    if graph.base.host_pace:
        return _from_pace(graph)
    if not recording.on_device and recording.correction is not None:
        return HostScale(1.0, 1.0, 1.0, solved=True)
    overhead = profiler_overhead(recording)
    if isinstance(overhead, Measure):
        if recording.on_device and overhead.value < SEEN_FROM and _is_hidden(graph):
            return HostScale(1 / SLOWDOWN_BESIDE_GPU, 1 / MAX_HOST_SLOWDOWN, 1.0, solved=False, hidden=True)
        # The overhead is that of the median step (of the mean step if the steps are uneven). The window also contains
        # longer steps, with and without the profiler, and interruptions that the median step does not have.
        account = recording.account
        interrupted = account.ns[Regime.INTERRUPTION]
        target = interrupted + (account.window - interrupted) * (1 - overhead.value)
        least = 1 / MAX_HOST_SLOWDOWN
        fastest = with_host_scale(graph, least).window() if recording.on_device else 0.0
        if target >= fastest:
            scale = _solved(graph, target)
            return HostScale(scale, scale, scale, solved=True)
        # The device limits the steps without the profiler. Every host is possible that makes the window at most
        # NO_SLOWER longer than the fastest plausible host does.
        scale = _solved(graph, fastest * (1 + NO_SLOWER))
        return HostScale(scale, min(least, scale), scale, solved=True)
    if not recording.on_device:
        return HostScale(1.0, 1.0, 1.0, solved=False)
    return HostScale(_from_event_costs(graph), 1 / MAX_HOST_SLOWDOWN, 1.0, solved=False)


def _from_pace(graph: ModifiedGraph) -> HostScale:
    """Returns the scale at which the host alone, for a device that needs no time, has steps as long as those in which
    the device did not hold the host back. The bounds are those of the shortest and the longest of these steps."""
    pace, usual = graph.base.host_pace, float(np.median(graph.base.host_pace))
    least, expected, most = (_solved(graph, time, ModifiedGraph.host_step) for time in (min(pace), usual, max(pace)))
    _, phases = phase_times(graph.base.recording, usual)
    return HostScale(expected, least, most, solved=False, hidden=True, pace=usual, phases=phases)


def _is_hidden(graph: ModifiedGraph) -> bool:
    """Returns True if the device limits the steps: even the fastest plausible host shortens the window by less than
    SEEN_FROM, and the step time does not show the scale of the host."""
    fastest = with_host_scale(graph, 1 / MAX_HOST_SLOWDOWN)
    return fastest.window() > (1 - SEEN_FROM) * graph.window()


def _solved(
    graph: ModifiedGraph, time: float, time_of: Callable[[ModifiedGraph], float] = ModifiedGraph.window
) -> float:
    """Returns the scale from MIN_HOST_SCALE to 1 at which `time_of` the graph, by default the time of the replay, is
    `time` ns, found by bisection.

    Returns 1 if it is at most `time` without scaling.
    """
    if time_of(graph) <= time * (1 + NO_OVERHEAD_BELOW):
        return 1.0
    low, high = MIN_HOST_SCALE, 1.0
    for _ in range(BISECTION_ROUNDS):
        middle = (low + high) / 2
        if time_of(with_host_scale(graph, middle)) > time:
            high = middle
        else:
            low = middle
    return high


def _from_event_costs(graph: ModifiedGraph) -> float:
    """Returns the scale (dispatch time - profiler overhead) / dispatch time, at least 1 / MAX_HOST_SLOWDOWN.

    The overhead is the number of events recorded on launching threads, times the cost of recording one such event.
    """
    recording, items = graph.base.recording, graph.items
    events = recording.trace.events
    launching = np.zeros(len(recording.trace.threads), np.bool_)
    launching[recording.host.launching_threads] = True
    counted = look_up(launching, events.thread) & recording.in_window(events.start)
    overhead = sum(cost * np.count_nonzero(counted & (events.kind == kind)) for kind, cost in _COST_PER_EVENT.items())
    inside = recording.in_window(items.at)
    dispatching = int(items.gap.of(Activity.DISPATCH)[inside].sum() + items.cost[inside].sum())
    return float(np.clip(1 - overhead / max(dispatching, 1), 1 / MAX_HOST_SLOWDOWN, 1.0))
