"""A recording, its dependency graph, and what all modified graphs of the recording share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.cpu_attribution import undisturbed_share
from tb_bottleneck.attribution.profiler_time.logged_steps import filling_steps
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.replay.graph.blocks import Layout, layout_of
from tb_bottleneck.replay.graph.cpu_graph import host_graph_of
from tb_bottleneck.replay.graph.graph import Graph, graph_of
from tb_bottleneck.replay.host_phases import phase_weights
from tb_bottleneck.replay.simulator import Check, check
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.process_facts import HOST_PACE, positive
from tb_bottleneck.trace.table import Floats, Ints


@dataclass(frozen=True, eq=False)
class RecordedGraph:
    """A recording, its dependency graph, and derived values that all modified graphs of the recording share."""

    recording: Recording

    @cached_property
    def graph(self) -> Graph:
        """The dependency graph: of host and device (graph_of), or for a CPU run of the main thread (host_graph_of)."""
        return graph_of(self.recording) if self.recording.on_device else host_graph_of(self.recording)

    @cached_property
    def layout(self) -> Layout:
        """The blocks of the graph: groups of items that the simulation processes at once (graph/blocks.py)."""
        return layout_of(self.graph)

    @cached_property
    def check(self) -> Check:
        """The error of a replay of the unmodified graph, which decides whether predictions are made."""
        return check(self.graph, self.layout)

    @property
    def ops(self) -> DeviceOps:
        """The operations of all devices. The column `op` of Items contains row numbers of this table."""
        return self.recording.trace.all_device_ops

    @cached_property
    def computing(self) -> tuple[Ints, Ints]:
        """The rows of the items with compute kernels of the judged device, and the recorded start times of these
        kernels in ns. Both are sorted by start. Collectives and copies are no compute kernels."""
        items, ops = self.graph.items, self.ops
        if not len(ops):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows = np.flatnonzero(np.isin(items.stream, self.graph.judged) & np.isin(ops.work[items.op], COMPUTE_KERNELS))
        rows = rows[np.argsort(ops.start[items.op[rows]], kind="stable")]
        return rows, ops.start[items.op[rows]]

    @cached_property
    def busy(self) -> int:
        """The recorded time in which at least one compute kernel ran on the judged device, in ns."""
        return self.busy_with(self.graph.items.length)

    def busy_with(self, length: Ints) -> int:
        """Returns the time in ns in which the judged device would compute if the operations had other lengths.

        `length` has one length (ns) per item. The kernels keep their recorded start times. The result is a lower bound
        of the window, because kernels on several streams share the device, which the graph does not model. Collectives
        and copies are left out, because they may run in parallel with kernels.
        """
        rows, begin = self.computing
        steps = self.recording.steps
        end = np.clip(begin + length[rows], steps.begin, steps.end)
        begin = np.clip(begin, steps.begin, steps.end)
        # Kernels are sorted by start, so each one adds only the part that ends after all earlier ones.
        reach = np.maximum.accumulate(end)
        return int(np.maximum(reach - np.maximum(begin, np.append(steps.begin, reach[:-1])[: len(begin)]), 0).sum())

    @cached_property
    def quickest_share(self) -> float:
        """For a CPU run: time of the operators if nothing disturbs them / their recorded time, from 0 to 1."""
        return undisturbed_share(self.recording.trace, self.recording.main_operators)

    @cached_property
    def host_pace(self) -> tuple[float, ...]:
        """Times (ns) of steps in which the device did not hold the host back; empty if they were not recorded."""
        recording = self.recording
        found = recording.trace.header.context.get(HOST_PACE)
        known = tuple(time for time in map(positive, found if isinstance(found, list) else ()) if time is not None)
        return (known or filling_steps(recording)) if recording.on_device and recording.steps.basis != "whole" else ()

    @cached_property
    def phase_weights(self) -> Floats | None:
        """Per item, how the scale of the dispatching in its phase of the step differs (host_phases.py); None if that is
        not known."""
        if not self.recording.on_device:
            return None
        pace = float(np.median(self.host_pace)) if self.host_pace else 0.0
        return phase_weights(self.recording, self.graph.items, pace)

    @cached_property
    def gap_length(self) -> Ints:
        """The recorded host time before the issue of each item, in ns, summed over all host activities."""
        return self.graph.items.gap.total()

    def spans_named(self, prefix: str) -> Spans:
        """Returns the time spans (ns, merged if they overlap) in which operators or annotations ran whose names begin
        with `prefix`. The result is cached."""
        if prefix not in self._spans_by_prefix:
            self._spans_by_prefix[prefix] = self._find_spans(prefix)
        return self._spans_by_prefix[prefix]

    @cached_property
    def _spans_by_prefix(self) -> dict[str, Spans]:
        return {}

    def _find_spans(self, prefix: str) -> Spans:
        trace = self.recording.trace
        rows = trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
        rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(prefix))]
        return union(trace.events.start[rows], trace.events.end[rows])
