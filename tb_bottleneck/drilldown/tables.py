"""Makes the tables of the analysed window as one message. Makes the tables of waits and copies itself."""

from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.drilldown.group_by_name import groups_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.operations.operation_tables import (
    add_communications,
    add_critical_path,
    add_kernels,
    add_operators,
)
from tb_bottleneck.drilldown.roofline_chart import roofline_of
from tb_bottleneck.measures.trace.syncs import CostlyWait, costly_waits_of
from tb_bottleneck.measures.user_code.cause_times import wait_times
from tb_bottleneck.measures.user_code.frames import frame_text
from tb_bottleneck.measures.user_code.places import located
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.device_ops import Work

MAX_SYNC_ROWS = 100
MAX_SYNC_NAME_LENGTH = 300
_COPIES = (Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY, Work.PEER_COPY)

ProgramPlace = tuple[str, str, str]  # kind, operator, line


def add_waits(recording: Recording, tables: pb.Tables) -> None:
    """Adds to `tables` the waits of the host that left the device idle, grouped by line of the program and operator.

    The group with the most idle time is first.
    """
    if not recording.on_device:
        return
    by_place: defaultdict[ProgramPlace, list[CostlyWait]] = defaultdict(list)
    waits = costly_waits_of(recording)
    for wait, line in zip(waits, _lines(recording), strict=True):
        by_place[wait.kind, wait.operator, line].append(wait)
    costliest = sorted(by_place.items(), key=lambda item: -sum(wait.cost for wait in item[1]))
    for (kind, operator, line), group in costliest[:MAX_SYNC_ROWS]:
        cost, worst = sum(wait.cost for wait in group), max(group, key=lambda wait: wait.cost)
        tables.syncs.add(
            kind=kind,
            operator=operator[:MAX_SYNC_NAME_LENGTH],
            line=line[:MAX_SYNC_NAME_LENGTH],
            calls=len(group),
            waited_ns=float(sum(wait.end - wait.begin for wait in group)),
            cost_ns=float(cost),
            share=cost / tables.window_ns,
            begin_ns=float(worst.begin),
            end_ns=float(worst.end),
        )


def _lines(recording: Recording) -> list[str]:
    """Returns for each costly wait the line of the user's program as text; empty if the line is not known."""
    found = located(recording, wait_times(recording))
    lines = zip(found.user.tolist(), recording.trace.call_lines.of(found.called).tolist(), strict=True)
    return [frame_text(recording, row, line) if row >= 0 else "" for row, line in lines]


def add_copies(recording: Recording, tables: pb.Tables) -> None:
    """Adds to `tables` the copies and fills of the window, grouped by name, the group with the most time first."""
    ops, steps = recording.trace.device_ops, recording.steps
    ops = ops.take(np.isin(ops.work, _COPIES) & (ops.end > steps.begin) & (ops.start < steps.end))
    is_copy = np.array([name.lower().startswith("mem") for name in recording.trace.names], np.bool_)
    ops = ops.take(is_copy[ops.name])
    groups = groups_of(ops.name, ops.start, ops.end)
    size, shares = groups.summed(ops.bytes), groups.shares(ops.start, ops.end, steps.begin, steps.end)
    for group in groups.order[:MAX_SYNC_ROWS].tolist():
        longest = groups.longest[group]
        row = tables.copies.add(
            name=recording.trace.names[int(groups.value[group])][:MAX_SYNC_NAME_LENGTH],
            calls=int(groups.count[group]),
            bytes=float(size[group]),
            total_ns=float(groups.total[group]),
            share=float(shares[group]),
            begin_ns=float(ops.start[longest]),
            end_ns=float(ops.end[longest]),
        )
        if size[group] > 0 and groups.total[group] > 0:
            row.bytes_per_s = float(size[group]) / float(groups.total[group]) * NS_PER_S


MAX_STEP_COLUMNS = 240


def tables_of(inspected: InspectedTrace) -> pb.Tables:
    """Returns the tables of the window (the steps that the report is about); empty if nothing was recorded."""
    recording = inspected.recording
    if recording is None:
        return pb.Tables()
    window = recording.steps.end - recording.steps.begin
    tables = pb.Tables(window_ns=window, steps=len(recording.steps))
    add_kernels(inspected, recording, tables)
    add_operators(recording, tables)
    add_waits(recording, tables)
    add_copies(recording, tables)
    add_communications(recording, tables)
    add_critical_path(inspected, recording, tables)
    tables.roofline.CopyFrom(roofline_of(recording, window))
    tables.step_account.CopyFrom(_step_account(recording))
    return tables


def _step_account(recording: Recording) -> pb.StepColumns:
    """Returns the time of each step by regime, one column per step.

    With more than MAX_STEP_COLUMNS steps, a column has the mean of several consecutive steps.
    """
    edges = recording.steps.edges
    per_column = -(-(len(edges) - 1) // MAX_STEP_COLUMNS)
    cuts = np.append(np.arange(0, len(edges) - 1, per_column), len(edges) - 1)
    begins, ends, steps = edges[cuts[:-1]], edges[cuts[1:]], np.diff(cuts)
    columns = pb.StepColumns(begin_ns=begins.tolist(), end_ns=ends.tolist(), steps=steps.tolist())
    for regime, ns in recording.owned_spans.covered(begins, ends).items():
        if ns.any():
            columns.regimes.add(regime=regime, title=regime.label, ns=(ns / steps).tolist())
    return columns
