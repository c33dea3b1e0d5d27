"""Device time by the operator that launched it, and the kernel that each operator mostly runs."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Floats

# The operators whose kernels are shown, of those that take most time.
SHOWN_OPERATORS = 3
# An operator called fewer times than this tells little about the speed of a host.
MIN_OPERATOR_CALLS = 10
MIN_COMMON_OPERATORS = 5


@dataclass(frozen=True)
class OperatorTime:
    """Device time per step in ns, the kernel that takes most of it, and all its kernels."""

    ns: float
    kernel: str
    kernels: frozenset[str]

    def runs_others(self, other: "OperatorTime") -> bool:
        """Whether what takes most of the time on one side is not run on the other at all, both ways."""
        return self.kernel not in other.kernels and other.kernel not in self.kernels


def device_operators(recording: Recording, lengths: Floats | None = None) -> dict[str, OperatorTime]:
    """By the operator's name, most time first; with these lengths of the device's operations in the place of theirs."""
    trace, ops = recording.trace, recording.trace.device_ops
    called, operator = trace.calling_operators
    kernels = np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN))
    if not len(trace.calls):
        return {}
    rows = np.flatnonzero(ops.launched & kernels & called[ops.call] & recording.in_window(ops.start))
    length = (ops.end - ops.start).astype(np.float64) if lengths is None else lengths
    names = trace.events.name[operator[ops.call[rows]]]
    pairs, which = np.unique(np.stack([names, ops.name[rows]], axis=1), axis=0, return_inverse=True)
    totals = np.bincount(which.reshape(-1), weights=length[rows]) / len(recording.steps) if len(rows) else np.empty(0)
    found: dict[str, OperatorTime] = {}
    for (name, kernel), ns in sorted(zip(pairs.tolist(), totals.tolist(), strict=True), key=lambda one: -one[1]):
        seen = found.get(trace.names[name])
        kernel_name = trace.names[kernel]
        if seen is None:
            found[trace.names[name]] = OperatorTime(ns, kernel_name, frozenset((kernel_name,)))
        else:
            found[trace.names[name]] = OperatorTime(seen.ns + ns, seen.kernel, seen.kernels | {kernel_name})
    return dict(sorted(found.items(), key=lambda one: -one[1].ns))


def optimizer_spans(recording: Recording) -> Spans:
    """When an optimizer was at work, by its own annotations."""
    trace = recording.trace
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith("Optimizer."))]
    return union(trace.events.start[rows], trace.events.end[rows])


def changed_kernels(a: Recording, b: Recording) -> dict[str, tuple[str, str]]:
    """Of the operators that take most of A's device time those that run other kernels on B: both kernels, by name."""
    first, second = device_operators(a), device_operators(b)
    return {
        name: (first[name].kernel, second[name].kernel)
        for name in list(first)[:SHOWN_OPERATORS]
        if name in second and first[name].runs_others(second[name])
    }


def host_ratio(a: Recording, b: Recording) -> float | None:
    """How many times as long the same operators take on B's host as on A's, at the median.

    Of operators that call no other and launch nothing; None where too few are called on both sides, or where one side
    recorded stacks and the other did not, which slows the host down by itself.
    """
    if a.trace.header.stacks_recorded != b.trace.header.stacks_recorded:
        return None
    first, second = _host_times(a), _host_times(b)
    ratios = [second[name] / first[name] for name in first.keys() & second.keys() if first[name] > 0]
    return float(np.median(ratios)) if len(ratios) >= MIN_COMMON_OPERATORS else None


def _host_times(recording: Recording) -> dict[str, float]:
    """Median time of the operators that are called MIN_CALLS times or more, in ns, by name."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP, Kind.CALL)
    rows = rows[recording.in_window(trace.events.start[rows])]
    leaves = []
    for thread in np.unique(trace.events.thread[rows]).tolist():
        mine = rows[trace.events.thread[rows] == thread]
        start, duration = trace.events.start[mine], trace.events.duration[mine]
        own = nest(start, start + duration).self_times()
        leaves.append(mine[(own == duration) & (trace.events.kind[mine] == Kind.CPU_OP)])
    every = np.concatenate(leaves) if leaves else rows
    names, which, counts = np.unique(trace.events.name[every], return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    groups = np.split(trace.events.duration[every][order], np.cumsum(counts)[:-1])
    found = zip(names.tolist(), groups, strict=True) if len(names) else []
    return {trace.names[name]: float(np.median(times)) for name, times in found if len(times) >= MIN_OPERATOR_CALLS}
