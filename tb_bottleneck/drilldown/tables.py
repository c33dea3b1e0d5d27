"""All tables of a recording, as one message."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.operations.communication_table import add_communications
from tb_bottleneck.drilldown.operations.critical_table import add_critical_path
from tb_bottleneck.drilldown.operations.kernel_tables import add_kernels
from tb_bottleneck.drilldown.operations.operator_table import add_operators
from tb_bottleneck.drilldown.roofline_chart import roofline_of
from tb_bottleneck.drilldown.sync_and_copy_tables import add_copies, add_waits
from tb_bottleneck.schema import evidence_pb2 as pb

MAX_STEP_COLUMNS = 240


def tables_of(inspected: InspectedTrace) -> pb.Tables:
    """Returns the tables of the judged window; empty if nothing was recorded."""
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
    """Returns the account of each step. With more than MAX_STEP_COLUMNS steps, neighbours share a column (mean)."""
    edges = recording.steps.edges
    per_column = -(-(len(edges) - 1) // MAX_STEP_COLUMNS)
    cuts = np.append(np.arange(0, len(edges) - 1, per_column), len(edges) - 1)
    begins, ends, steps = edges[cuts[:-1]], edges[cuts[1:]], np.diff(cuts)
    columns = pb.StepColumns(begin_ns=begins.tolist(), end_ns=ends.tolist(), steps=steps.tolist())
    for regime, ns in recording.owned_spans.covered(begins, ends).items():
        if ns.any():
            columns.regimes.add(regime=regime, title=regime.label, ns=(ns / steps).tolist())
    return columns
