"""Compares two runs by the device time of each operator, the main kernels of each operator, the host's speed, and the
peak memory by category."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.units import bytes_text
from tb_bottleneck.schema import bottleneck_pb2 as report_pb
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Floats

MIN_DIFFERENCE = 0.02
"""Smallest difference that is listed, as a share of the larger peak."""


def memory_rows(a: report_pb.Report, b: report_pb.Report) -> list[pb.ContextRow]:
    """Returns a row for the peak memory if it differs between the reports, then a row for each memory category that
    differs, the largest difference first.

    Differences below MIN_DIFFERENCE of the larger peak are left out. Returns no rows if a peak is unknown.
    """
    peaks = a.memory.peak_bytes, b.memory.peak_bytes
    if not all(peaks):
        return []
    least = MIN_DIFFERENCE * max(peaks)
    parts = [{part.kind: part for part in report.memory.parts} for report in (a, b)]
    rows = []
    for kind in dict.fromkeys([*parts[0], *parts[1]]):
        first, second = (side[kind].bytes if kind in side else 0.0 for side in parts)
        title = (parts[0].get(kind) or parts[1][kind]).title
        rows.append((abs(second - first), _row(f"memory_{kind}", f"memory: {title.lower()}", first, second)))
    differing = [row for difference, row in sorted(rows, key=lambda pair: -pair[0]) if difference >= least]
    whole = [_row("memory_peak", "memory at the peak", *peaks)] if abs(peaks[1] - peaks[0]) >= least else []
    return whole + differing


def _row(key: str, title: str, a: float, b: float) -> pb.ContextRow:
    return pb.ContextRow(key=key, title=title, a=bytes_text(a), b=bytes_text(b))


# Number of operators for which main kernels are compared: those with the most device time.
SHOWN_OPERATORS = 3
# An operator with fewer calls says little about the speed of a host.
MIN_OPERATOR_CALLS = 10
MIN_COMMON_OPERATORS = 5


@dataclass(frozen=True)
class OperatorTime:
    """The time of the kernels that one operator launches. `ns` is in ns per step. `kernels` are the names of these
    kernels, `kernel` is the main one, which takes the most time."""

    ns: float
    kernel: str
    kernels: frozenset[str]

    def runs_others(self, other: "OperatorTime") -> bool:
        """Returns True if neither operator launches the main kernel of the other one."""
        return self.kernel not in other.kernels and other.kernel not in self.kernels


def device_operators(recording: Recording, lengths: Floats | None = None) -> dict[str, OperatorTime]:
    """Returns a dict from the names of operators to the times of the kernels that they launch, longest first.

    `lengths` has the length in ns of each operation of the judged device, and replaces the recorded lengths.
    """
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
    operators: dict[str, OperatorTime] = {}
    for (name, kernel), ns in sorted(zip(pairs.tolist(), totals.tolist(), strict=True), key=lambda item: -item[1]):
        known = operators.get(trace.names[name])
        kernel_name = trace.names[kernel]
        if known is None:
            operators[trace.names[name]] = OperatorTime(ns, kernel_name, frozenset((kernel_name,)))
        else:
            operators[trace.names[name]] = OperatorTime(known.ns + ns, known.kernel, known.kernels | {kernel_name})
    return dict(sorted(operators.items(), key=lambda item: -item[1].ns))


def changed_kernels(a: Recording, b: Recording) -> dict[str, tuple[str, str]]:
    """Returns those of the SHOWN_OPERATORS costliest operators of `a` that launch other main kernels in `b`: a dict
    from the name of the operator to its main kernels in `a` and `b`."""
    first, second = device_operators(a), device_operators(b)
    return {
        name: (first[name].kernel, second[name].kernel)
        for name in list(first)[:SHOWN_OPERATORS]
        if name in second and first[name].runs_others(second[name])
    }


def host_ratio(a: Recording, b: Recording) -> float | None:
    """Returns the median over common operators of (host time in `b` / host time in `a`), which shows which host is
    slower.

    Only operators count that call no other operator and launch nothing. Returns None if fewer than MIN_COMMON_OPERATORS
    of them run in both recordings, or if only one of these recorded stacks, because that slows the host.
    """
    if a.trace.header.stacks_recorded != b.trace.header.stacks_recorded:
        return None
    first, second = _host_times(a), _host_times(b)
    ratios = [second[name] / first[name] for name in first.keys() & second.keys() if first[name] > 0]
    return float(np.median(ratios)) if len(ratios) >= MIN_COMMON_OPERATORS else None


def _host_times(recording: Recording) -> dict[str, float]:
    """Returns the median host time in ns of operators that call no other operator and launch nothing, by name.
    Operators with fewer than MIN_OPERATOR_CALLS calls are left out."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP, Kind.CALL)
    rows = rows[recording.in_window(trace.events.start[rows])]
    leaves = []
    for thread in np.unique(trace.events.thread[rows]).tolist():
        on_thread = rows[trace.events.thread[rows] == thread]
        start, duration = trace.events.start[on_thread], trace.events.duration[on_thread]
        own = nest(start, start + duration).self_times()
        leaves.append(on_thread[(own == duration) & (trace.events.kind[on_thread] == Kind.CPU_OP)])
    every = np.concatenate(leaves) if leaves else rows
    names, which, counts = np.unique(trace.events.name[every], return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    groups = np.split(trace.events.duration[every][order], np.cumsum(counts)[:-1])
    by_name = zip(names.tolist(), groups, strict=True) if len(names) else []
    return {trace.names[name]: float(np.median(times)) for name, times in by_name if len(times) >= MIN_OPERATOR_CALLS}
