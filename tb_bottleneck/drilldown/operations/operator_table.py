"""The table of operators."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.group_by_name import Groups, groups_of, shares_of
from tb_bottleneck.drilldown.operations.group_roofs import group_roofs
from tb_bottleneck.drilldown.operations.kernel_tables import MAX_KERNEL_NAME_LENGTH, MAX_KERNEL_ROWS
from tb_bottleneck.drilldown.operations.operator_rows import OperatorRows, launches_of, operator_rows_of
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.table import Floats


def add_operators(recording: Recording, tables: pb.Tables) -> None:
    """Adds the operators by name: times with and without what they call, and what they launch."""
    trace, events = recording.trace, recording.trace.events
    rows = operator_rows_of(recording)
    start, end = events.start[rows.row], events.end[rows.row]
    weight = rows.device if recording.on_device else rows.host
    groups = groups_of(events.name[rows.row], start, end, weight)
    shares = _shares(recording, rows, groups)
    length = rows.device_total if recording.on_device else end - start
    extremes = groups_of(events.name[rows.row], np.zeros(len(rows), np.int64), length)
    host, roofs = groups.summed(rows.host), group_roofs(groups, rows.device, rows.reached, rows.bound_by)
    host_total = groups.summed(np.where(rows.outermost, end - start, 0))
    device_total = groups.summed(np.where(rows.outermost, rows.device_total, 0))
    kernels, tensor, known = (groups.summed(values) for values in (rows.kernels, rows.tensor, rows.known_unit))
    # Operators without device time follow, ordered by host time.
    order = np.lexsort((-host, -groups.total))
    for group in order[:MAX_KERNEL_ROWS].tolist():
        longest, calls = int(rows.row[groups.longest[group]]), int(groups.count[group])
        name = trace.names[int(groups.value[group])]
        row = tables.operators.add(
            name=name[:MAX_KERNEL_NAME_LENGTH],
            calls=calls,
            host_ns=float(host[group]),
            device_ns=float(groups.total[group]) if recording.on_device else 0.0,
            share=float(shares[group]),
            begin_ns=float(events.start[longest]),
            end_ns=float(events.end[longest]),
            host_total_ns=float(host_total[group]),
            device_total_ns=float(device_total[group]),
            min_ns=float(length[extremes.shortest[group]]),
            mean_ns=float(extremes.total[group]) / calls,
            max_ns=float(length[extremes.longest[group]]),
            kernels=float(kernels[group]) / calls,
            tensor_eligible=first_match(operator_patterns(), name) == "contraction",
        )
        if roofs.is_known[group]:
            row.reached, row.roof = float(roofs.reached[group]), roofs.regime[group]
        if known[group] > 0:
            row.tensor_share = float(tensor[group]) / float(groups.summed(rows.device)[group])
    tables.operators_left_out.CopyFrom(groups.left_out(MAX_KERNEL_ROWS))


def _shares(recording: Recording, rows: OperatorRows, groups: Groups) -> Floats:
    """Returns the share of the window in which work of each operator runs."""
    steps, ops = recording.steps, recording.trace.device_ops
    if not recording.on_device:  # own times on several threads may overlap, and it is not known where
        return np.minimum(groups.total / max(steps.end - steps.begin, 1), 1.0)
    launched, index = launches_of(recording, rows.row)
    member = groups.member[index]
    return shares_of(member, len(groups.value), ops.start[launched], ops.end[launched], steps.begin, steps.end)
