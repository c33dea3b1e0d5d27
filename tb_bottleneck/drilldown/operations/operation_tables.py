"""Makes the tables of operators, kernels, communications and the critical path, and finds what limits each group of
operators or kernels (the roof in the roofline model)."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import overlapping
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.drilldown.group_by_name import Groups, groups_of, shares_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS
from tb_bottleneck.drilldown.operations.critical_path import critical_path
from tb_bottleneck.drilldown.operations.operator_rows import OperatorRows, launches_of, operator_rows_of
from tb_bottleneck.jobs.report.rank_table import bus_factor
from tb_bottleneck.jobs.summary.communication_rows import communications_of
from tb_bottleneck.jobs.summary.own_time import GroupTable
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns, precision_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Floats, Ints


@dataclass(frozen=True)
class GroupRoofs:
    """For each group of rows, what limits most of the group's time (the roof: compute or memory), and the fraction
    (0 to 1) of this roof that the group reaches. `is_known` is False if nothing is known about the group."""

    is_known: Bools
    reached: Floats
    regime: list[Regime]


def group_roofs(groups: Groups, time: Ints, reached: Floats, bound_by: Ints) -> GroupRoofs:
    """Returns the roofs of the groups. `time` (ns), `reached` (fraction of the roof, 0 to 1) and `bound_by` (BoundBy)
    have one element per grouped row."""
    bounded = np.where(bound_by != BoundBy.UNKNOWN, time, 0)
    total, compute = groups.summed(bounded), groups.summed(np.where(bound_by == BoundBy.COMPUTE, time, 0))
    regimes = [Regime.COMPUTE if c * 2 >= t else Regime.MEMORY for c, t in zip(compute, total, strict=True)]
    return GroupRoofs(total > 0, groups.summed(bounded * reached) / np.maximum(total, 1), regimes)


def add_operators(recording: Recording, tables: pb.Tables) -> None:
    """Adds one row per operator name to `tables`: the times with and without called operators, and the kernels."""
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
    """Returns for each group in `groups`, which has one operator name, the fraction (0 to 1) of the window in which
    work of the operator runs. `rows` are the grouped calls."""
    steps, ops = recording.steps, recording.trace.device_ops
    if not recording.on_device:  # own times on several threads may overlap, and it is not known where
        return np.minimum(groups.total / max(steps.end - steps.begin, 1), 1.0)
    launched, index = launches_of(recording, rows.row)
    member = groups.member[index]
    return shares_of(member, len(groups.value), ops.start[launched], ops.end[launched], steps.begin, steps.end)


MAX_KERNEL_ROWS = 300
MAX_KERNEL_NAME_LENGTH = 600


def add_kernels(inspected: InspectedTrace, recording: Recording, tables: pb.Tables) -> None:
    """Adds one row per kernel name to `tables`. Copies are left out."""
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
    """Returns for each group the mean of `values` where the mask `known` is True, weighted by `length`, and a mask of
    the groups that have known values. `values`, `length` and `known` have one element per row."""
    weight = np.where(known, np.maximum(length, 1), 0)
    total = groups.summed(weight)
    return groups.summed(weight * values) / np.maximum(total, 1), total > 0


MAX_COMMUNICATION_ROWS = 200
_PAIR = 2


def add_communications(recording: Recording, tables: pb.Tables) -> None:
    """Adds to `tables` the collectives and messages of the window, grouped by operation, process group and size.

    The recording of one rank does not show how long a collective transfers data and how long it waits for other ranks.
    The bandwidths are therefore lower bounds.
    """
    groups = GroupTable(recording.trace.header)
    rows, known = communications_of(recording, groups), groups.groups()
    keys = np.stack([rows.operation, rows.group, rows.bytes], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    by_key = groups_of(which.reshape(-1), rows.start, rows.end)
    shares = by_key.shares(rows.start, rows.end, 0, recording.steps.end - recording.steps.begin)
    length = rows.end - rows.start
    for group in by_key.order[:MAX_COMMUNICATION_ROWS].tolist():
        operation, of_group, size = (int(value) for value in distinct[group])
        process_group, total = known[of_group], float(by_key.total[group])
        longest, calls = by_key.longest[group], int(by_key.count[group])
        ranks = process_group.size or recording.trace.header.world_size or 0
        row = tables.communications.add(
            operation=Operation(operation).name.lower(),
            group=process_group.description or process_group.name,
            ranks=ranks,
            calls=calls,
            bytes=float(size),
            total_ns=total,
            share=float(shares[group]),
            min_ns=float(length[by_key.shortest[group]]),
            mean_ns=total / calls,
            max_ns=float(length[longest]),
            begin_ns=float(rows.start[longest] + recording.steps.begin),
            end_ns=float(rows.end[longest] + recording.steps.begin),
        )
        if size > 0 and total > 0:
            row.algorithm_bytes_per_s = size * calls / total * NS_PER_S
            members = _PAIR if Operation(operation).point_to_point else ranks
            if members > 1:
                row.bus_bytes_per_s = row.algorithm_bytes_per_s * bus_factor(Operation(operation), members)


MAX_CRITICAL_ROWS = 100
_MAX_NAME_LENGTH = 600


def add_critical_path(inspected: InspectedTrace, recording: Recording, tables: pb.Tables) -> None:
    """Adds to `tables` the parts of the critical path. Parts on the device are grouped by the name of the operation,
    and parts on the host by the regime that owns the time."""
    path, trace = critical_path(recording), recording.trace
    ops, owned = trace.all_device_ops, recording.owned_spans
    on_device = np.flatnonzero(path.op >= 0)
    host = np.flatnonzero(path.op < 0)
    part, span = overlapping(path.begin[host], path.end[host], owned.start, owned.end)
    begin = np.concatenate((path.begin[on_device], np.maximum(path.begin[host][part], owned.start[span])))
    end = np.concatenate((path.end[on_device], np.minimum(path.end[host][part], owned.end[span])))
    # The key of an operation is the row of its name. The keys of regimes come after all names.
    key = np.concatenate((ops.name[path.op[on_device]], len(trace.names) + owned.regime[span]))
    groups = groups_of(key, begin, end)
    for group in groups.order[:MAX_CRITICAL_ROWS].tolist():
        number, longest = int(groups.value[group]), int(groups.longest[group])
        is_host = number >= len(trace.names)
        regime = (
            REGIMES[number - len(trace.names)]
            if is_host
            else KEYS[int(inspected.device_keys[path.op[on_device[longest]]])]
        )
        tables.critical_path.add(
            name="" if is_host else trace.names[number][:_MAX_NAME_LENGTH],
            regime=regime,
            count=int(groups.count[group]),
            total_ns=float(groups.total[group]),
            share=float(groups.total[group]) / tables.window_ns,
            begin_ns=float(begin[longest]),
            end_ns=float(end[longest]),
        )
