"""The table of kernels."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.group_by_name import Groups, groups_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS
from tb_bottleneck.drilldown.operations.group_roofs import group_roofs
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Floats, Ints

MAX_KERNEL_ROWS = 300
MAX_KERNEL_NAME_LENGTH = 600


def add_kernels(inspected: InspectedTrace, recording: Recording, tables: pb.Tables) -> None:
    """Adds the kernels, without copies, by name."""
    trace, ops = recording.trace, recording.trace.device_ops
    kernels = np.isin(ops.name, np.unique(trace.events.name[trace.rows(Kind.KERNEL)]))
    rows = np.flatnonzero(kernels & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end))
    groups = groups_of(ops.name[rows], ops.start[rows], ops.end[rows])
    shares = groups.shares(ops.start[rows], ops.end[rows], recording.steps.begin, recording.steps.end)
    own_device = trace.all_device_ops.device == trace.device_index
    key = inspected.device_keys[own_device][rows][groups.longest] if len(rows) else rows
    bounds = recording.kernel_bounds
    roofs = group_roofs(groups, groups.length, bounds.reached[rows], bounds.bound_by[rows])
    length = ops.end[rows] - ops.start[rows]
    blocks, filled = _weighted_mean(groups, length, ops.blocks[rows], ops.blocks[rows] > 0)
    occupancy, occupied = _weighted_mean(groups, length, ops.occupancy[rows] - 1, ops.occupancy[rows] > 0)
    for group in groups.order[:MAX_KERNEL_ROWS].tolist():
        name = trace.names[int(groups.value[group])]
        precision = precision_of(name)
        row = tables.kernels.add(
            name=name[:MAX_KERNEL_NAME_LENGTH],
            regime=KEYS[int(key[group])],
            calls=int(groups.count[group]),
            total_ns=float(groups.total[group]),
            share=float(shares[group]),
            mean_ns=float(groups.total[group]) / int(groups.count[group]),
            precision=(precision.dtype or "") if precision else "",
            unit=precision.unit if precision and precision.unit != "unknown" else "",
            begin_ns=float(ops.start[rows][groups.longest[group]]),
            end_ns=float(ops.end[rows][groups.longest[group]]),
            min_ns=float(length[groups.shortest[group]]),
            max_ns=float(length[groups.longest[group]]),
        )
        if filled[group] and trace.multiprocessors:
            row.blocks_per_sm = float(blocks[group]) / trace.multiprocessors
        if occupied[group]:
            row.occupancy = float(occupancy[group]) / 100
        if roofs.is_known[group]:
            row.reached, row.roof = float(roofs.reached[group]), roofs.regime[group]
    tables.kernels_left_out.CopyFrom(groups.left_out(MAX_KERNEL_ROWS))


def _weighted_mean(groups: Groups, length: Ints, values: Ints, known: Bools) -> tuple[Floats, Bools]:
    """Returns the mean of the known values of each group, weighted by the lengths, and where there is one."""
    weight = np.where(known, np.maximum(length, 1), 0)
    total = groups.summed(weight)
    return groups.summed(weight * values) / np.maximum(total, 1), total > 0
