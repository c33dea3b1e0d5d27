"""Collectives that run on the host: those of the backends Gloo, MPI and UCC.

Threads of the backend run a collective while the training thread waits. No recorded event shows this wait. Therefore,
time in which a collective runs on the host and nothing is recorded on the training thread belongs to the collective,
not to Python.
"""

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.intervals import EMPTY, Spans, intersect, union
from tb_bottleneck.roofline.operator_args import OperatorArguments
from tb_bottleneck.trace.columns.number_columns import MAX_ID
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Prefixes of the names under which the backends record collectives with record_function (pytorch
# torch/csrc/distributed/c10d: ProcessGroupGloo.cpp and others).
HOST_BACKEND_PREFIXES = ("gloo:", "mpi:", "ucc:")


def host_collectives(trace: Trace) -> Rows:
    """Returns the rows of the events that are collectives on the host, in order of start."""
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(HOST_BACKEND_PREFIXES))]


def message_bytes(trace: Trace, rows: Rows) -> Ints:
    """Returns the message size in bytes of each collective in `rows` (event rows), computed from its recorded inputs.

    The size is 0 if it is unknown.
    """
    signatures = trace.events.signature[rows]
    first, which = distinct_rows(signatures)
    sizes = [_input_bytes(trace.signatures[number]) if number else 0 for number in signatures[first].tolist()]
    return np.asarray(np.array(sizes, np.int64)[which], np.int64)


def _input_bytes(signature: tuple[bytes, bytes, bytes]) -> int:
    operands = operands_of(signature)
    if operands is None:
        return 0
    arguments = OperatorArguments(operands.dims, operands.types, operands.concrete)
    return min(sum(arguments.bytes(index) or 0 for index in range(len(operands.dims))), MAX_ID - 1)


def host_collective_time(trace: Trace, time: Spans) -> Spans:
    """Returns the part of `time` in which at least one collective runs on the host."""
    rows = host_collectives(trace)
    events = trace.events
    return intersect(time, union(events.start[rows], events.end[rows])) if len(rows) else EMPTY


def waits_for_collectives(trace: Trace, pauses: Spans) -> Spans:
    """Returns the time of collectives on the host in those `pauses` of the training thread in which one of them ends.

    In such a pause, the thread waits for the collective. A pause in which no collective ends is not a wait: the thread
    prepares its next operator while a collective runs.
    """
    ends = np.sort(trace.events.end[host_collectives(trace)])
    waits = np.searchsorted(ends, pauses.ends, side="right") > np.searchsorted(ends, pauses.starts)
    return host_collective_time(trace, Spans(pauses.starts[waits], pauses.ends[waits]))
