"""The exported tables: their columns, and their rows from one recording.

The page docs/export.md lists the columns. A test compares that list with the columns here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.jobs.summary.communication_rows import communications_of
from tb_bottleneck.jobs.summary.own_time import GroupTable
from tb_bottleneck.jobs.summary.rank_summary import Communications, Operation
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace


class Column(NamedTuple):
    """A column of a table. `type` is text, int or float. Columns of the type text are dictionary-encoded."""

    name: str
    type: str
    unit: str
    meaning: str


_RECORDING = (
    Column("recording", "text", "", "run and file of the recording; the same in all tables"),
    Column("rank", "int", "", "rank of the process; null if it is not recorded"),
)
_STEP = Column("step", "int", "", "judged step in which it starts, from 0; null outside the judged window")
_START = Column("start_ns", "int", "ns", "start, on the recording's own clock")
_DURATION = Column("duration_ns", "int", "ns", "time taken")

EVENTS = (
    *_RECORDING,
    _START,
    _DURATION,
    Column("kind", "text", "", "cpu_op, annotation, python, call, kernel, memcpy, memset, overhead or other"),
    Column("name", "text", "", "name of the operator, function, call or kernel"),
    Column("process", "text", "", "process id; for device work the device's"),
    Column("thread", "text", "", "thread id; for device work the stream"),
    Column("thread_name", "text", "", "name of the thread; empty if it is not recorded"),
    Column("correlation", "int", "", "links a runtime call to its device work; 0 if there is no link"),
    Column("sequence", "int", "", "autograd's number: a backward operator has that of its forward operator; else 0"),
    Column("shapes", "text", "", "shapes of the inputs of an operator as JSON; empty if they are not recorded"),
    Column("types", "text", "", "types of the inputs as JSON; empty if they are not recorded"),
    _STEP,
)
KERNELS = (
    *_RECORDING,
    _START,
    _DURATION,
    Column("name", "text", "", "name of the kernel, copy or fill"),
    Column("work", "text", "", "contraction, streaming, collective, upload, download, device_copy, peer_copy, unknown"),
    Column("device", "int", "", "index of the device"),
    Column("stream", "text", "", "the stream"),
    Column("bytes", "int", "bytes", "size of a copy, a fill or a collective's message; else 0"),
    Column("blocks", "int", "", "thread blocks of the grid; 0 if it is not recorded"),
    Column("call", "text", "", "runtime call that launched it; null if it is not recorded"),
    Column("call_start_ns", "int", "ns", "start of that call"),
    Column("call_thread", "text", "", "thread of that call"),
    Column("operator", "text", "", "innermost operator around that call; null if there is none"),
    _STEP,
)
COLLECTIVES = (
    *_RECORDING,
    _START,
    _DURATION,
    Column(
        "operation", "text", "", "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, other, ..."
    ),
    Column("group", "text", "", "name of the process group; empty if it is not recorded"),
    Column("group_size", "int", "", "ranks of the group; 0 if it is not recorded"),
    Column("sequence", "int", "", "number of the collective in its group; -1 if it is not recorded"),
    Column("bytes", "int", "bytes", "size of the larger side; 0 if it is not recorded"),
    Column("peer", "int", "", "the other rank of a message; -1 if there is none"),
    _STEP,
)
RANKS = (
    *_RECORDING,
    Column("world_size", "int", "", "ranks of the job; null if it is not recorded"),
    Column("host", "text", "", "hash of the host's name; empty if it is not recorded"),
    Column("device", "text", "", "name of the device"),
    Column("health", "text", "", "ok, degraded, incomplete or unreadable"),
    Column("verdict", "text", "", "regime of the verdict; null if there is none"),
    Column("severity", "text", "", "critical, warning, info or none; null without a verdict"),
    Column("headline", "text", "", "the verdict as a sentence; null without one"),
    Column("steps", "int", "", "judged steps; 0 if nothing could be measured"),
    Column("window_ns", "int", "ns", "length of the judged window"),
    Column("step_mean_ns", "float", "ns", "mean step"),
    Column("events", "int", "", "rows in the table of events"),
    Column("lost", "int", "", "events and other parts of the file that could not be used"),
    *(Column(f"{regime.value}_ns", "float", "ns", f"time per step: {regime.label}") for regime in REGIMES),
)
TABLES = {"events": EVENTS, "kernels": KERNELS, "collectives": COLLECTIVES, "ranks": RANKS}


@dataclass(frozen=True)
class Words:
    """A column of text. Row i has the text `words[rows[i]]`. `missing` is a mask of the rows without a text."""

    rows: Ints
    words: Sequence[str]
    missing: Bools | None = None


@dataclass(frozen=True)
class Numbers:
    """A column of integers. `rows` has one value per row. `missing` is a mask of the rows without a number."""

    rows: Ints
    missing: Bools | None = None


Table = dict[str, Words | Numbers]


def events_table(trace: Trace, recording: Recording | None) -> Table:
    """Returns the columns of the table `events`, by name: all complete events of the trace, sorted by start."""
    events = trace.events
    signature = [tuple(part.decode("utf-8", "replace") for part in signature) for signature in trace.signatures]
    return {
        "start_ns": Numbers(events.start),
        "duration_ns": Numbers(events.duration),
        "kind": Words(events.kind, [kind.name.lower() for kind in Kind]),
        "name": Words(events.name, trace.names),
        "process": Words(events.thread, [thread.process for thread in trace.threads]),
        "thread": Words(events.thread, [thread.thread for thread in trace.threads]),
        "thread_name": Words(events.thread, [thread.name for thread in trace.threads]),
        "correlation": Numbers(events.correlation),
        "sequence": Numbers(events.sequence),
        "shapes": Words(events.signature, [dims for dims, _, _ in signature]),
        "types": Words(events.signature, [types for _, types, _ in signature]),
        "step": _step_of(events.start, recording),
    }


def kernels_table(trace: Trace, recording: Recording | None) -> Table:
    """Returns the columns of the table `kernels`, by name: the operations of all devices, sorted by start."""
    ops, calls, events = trace.all_device_ops, trace.calls, trace.events
    call = np.where(ops.launched, ops.call, 0)
    called, operator = trace.calling_operators
    if not len(calls):
        name, start, thread = (np.zeros(len(ops), np.int64) for _ in range(3))
        operator_name, with_operator = name, np.zeros(len(ops), np.bool_)
    else:
        name, start, thread = calls.name[call], calls.start[call], calls.thread[call]
        operator_name, with_operator = events.name[operator[call]], ops.launched & called[call]
    threads = [thread.thread for thread in trace.threads]
    return {
        "start_ns": Numbers(ops.start),
        "duration_ns": Numbers(ops.end - ops.start),
        "name": Words(ops.name, trace.names),
        "work": Words(ops.work, [work.name.lower() for work in Work]),
        "device": Numbers(ops.device),
        "stream": Words(ops.queue, threads),
        "bytes": Numbers(ops.bytes),
        "blocks": Numbers(ops.blocks),
        "call": Words(name, trace.names, ~ops.launched),
        "call_start_ns": Numbers(start, ~ops.launched),
        "call_thread": Words(thread, threads, ~ops.launched),
        "operator": Words(operator_name, trace.names, ~with_operator),
        "step": _step_of(ops.start, recording),
    }


def collectives_table(trace: Trace, recording: Recording | None) -> Table:
    """Returns the columns of the table `collectives`, by name: collectives and messages between ranks in the steps that
    the report judges, sorted by start. The columns are empty if `recording` is None."""
    table = GroupTable(trace.header)
    none = np.empty(0, np.int64)
    rows = Communications(*[none] * len(fields(Communications)))
    if recording is not None:
        rows = communications_of(recording, table)
    groups = table.groups()
    sizes = np.array([group.size for group in groups], np.int64)
    start = rows.start + (0 if recording is None else recording.steps.begin)
    return {
        "start_ns": Numbers(start),
        "duration_ns": Numbers(rows.end - rows.start),
        "operation": Words(rows.operation, [operation.name.lower() for operation in Operation]),
        "group": Words(rows.group, [group.name for group in groups]),
        "group_size": Numbers(sizes[rows.group]),
        "sequence": Numbers(rows.sequence),
        "bytes": Numbers(rows.bytes),
        "peer": Numbers(rows.peer),
        "step": _step_of(start, recording),
    }


def rank_row(report: pb.Report, trace: Trace) -> dict[str, Any]:
    """Returns the row of one recording in the table of ranks, as a dict from column names to values."""
    judged = report.HasField("verdict")
    per_step = {row.regime: row.ns_per_step for row in report.account}
    return {
        "world_size": report.world_size if report.HasField("world_size") else None,
        "host": trace.header.host,
        "device": report.device.name or report.device.kind,
        "health": report.health.status,
        "verdict": report.verdict.regime if judged else None,
        "severity": report.verdict.severity if judged else None,
        "headline": report.verdict.headline if judged else None,
        "steps": report.window.steps,
        "window_ns": round(report.window.end_ns - report.window.begin_ns),
        "step_mean_ns": report.window.step_ns.mean,
        "events": len(trace.events),
        "lost": sum(trace.lost.values()),
        **{f"{regime.value}_ns": per_step.get(regime.value, 0.0) for regime in REGIMES},
    }


def _step_of(start: Ints, recording: Recording | None) -> Numbers:
    if recording is None:
        return Numbers(np.zeros(len(start), np.int64), np.ones(len(start), np.bool_))
    edges = recording.steps.edges
    step = np.searchsorted(edges, start, side="right") - 1
    return Numbers(step, (step < 0) | (step >= len(recording.steps)))
