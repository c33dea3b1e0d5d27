"""Collectives that run on the host, with Gloo, MPI or UCC: threads of the backend run them while the program waits.

No row shows that the training thread waits for them. Therefore, time in which nothing else is recorded on the training
thread while such a collective runs belongs to the collective, not to Python.
"""

from tb_bottleneck.intervals import EMPTY, Spans, intersect, union
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Rows
from tb_bottleneck.trace.trace import Trace

# The record_function of each backend's work (pytorch torch/csrc/distributed/c10d: ProcessGroupGloo.cpp and others).
HOST_BACKEND_PREFIXES = ("gloo:", "mpi:", "ucc:")


def host_collectives(trace: Trace) -> Rows:
    """Returns the rows of the events that are collectives of the host, in order of start."""
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(HOST_BACKEND_PREFIXES))]


def host_collective_time(trace: Trace, time: Spans) -> Spans:
    """Returns the part of `time` in which a collective runs on the host."""
    rows = host_collectives(trace)
    events = trace.events
    return intersect(time, union(events.start[rows], events.end[rows])) if len(rows) else EMPTY
