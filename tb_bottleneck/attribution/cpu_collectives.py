"""Collectives that the host exchanges itself, with Gloo, MPI or UCC: threads of the backend do, and the program waits.

No row says that the training thread waits for them. So what it spends outside of everything that is recorded while such
a collective is under way belongs to the collective, and not to Python.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.attribution.idle_gaps import IdleGaps
from tb_bottleneck.intervals import EMPTY, Spans, complement, intersect, merge, subtract, union
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Rows
from tb_bottleneck.trace.trace import Trace

# The record_function of each backend's work (pytorch torch/csrc/distributed/c10d: ProcessGroupGloo.cpp and others).
HOST_BACKENDS = ("gloo:", "mpi:", "ucc:")


def host_collectives(trace: Trace) -> Rows:
    """Rows of the events that are collectives of the host, in order of start."""
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(HOST_BACKENDS))]


def python_time(steps: Steps, host: HostTimeline, gaps: IdleGaps | None) -> Spans:
    """When the device had no work, and nothing recorded says why. `gaps` are an accelerator's; else it is the CPU."""
    if gaps is None:
        return complement(_recorded(host, host.main_thread), steps.begin, steps.end)
    late = gaps.begin + gaps.by_activity.sum(axis=1)  # up to here the host was late; behind it, the launch itself
    idle = []
    for thread in np.unique(gaps.thread).tolist():
        mine = gaps.thread == thread
        idle.append(subtract(union(gaps.begin[mine], late[mine]), _recorded(host, thread)))
    return merge(*idle)


def _recorded(host: HostTimeline, thread: int | None) -> Spans:
    """When anything that is recorded says what a thread does."""
    activities = host.activities(thread) if thread is not None and thread >= 0 else {}
    return merge(*(spans for activity, spans in activities.items() if activity < Activity.OTHER))


def host_collective_time(trace: Trace, python: Spans) -> Spans:
    """The part of this time in which the host exchanges collectives."""
    rows = host_collectives(trace)
    events = trace.events
    return intersect(python, union(events.start[rows], events.end[rows])) if len(rows) else EMPTY


def told_apart(ns: dict[Regime, int], trace: Trace, python: Spans) -> dict[Regime, int]:
    """The nanoseconds by regime with what the host spends on collectives moved from `host` to `communication`."""
    moved = min(host_collective_time(trace, python).total(), ns.get(Regime.HOST, 0))
    return ns | {
        Regime.HOST: ns.get(Regime.HOST, 0) - moved,
        Regime.COMMUNICATION: ns.get(Regime.COMMUNICATION, 0) + moved,
    }
