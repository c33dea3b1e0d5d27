"""Tables of kernels, and of the operators that launched them."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.group_by_name import Groups, groups_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.regime import Regime
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows

MAX_KERNEL_ROWS = 300
MAX_KERNEL_NAME_LENGTH = 600


def add_kernels(inspected: InspectedTrace, recording: Recording, tables: pb.Tables) -> None:
    """Adds the kernels, without copies, by name."""
    trace, ops = recording.trace, recording.trace.device_ops
    kernels = np.isin(ops.name, np.unique(trace.events.name[trace.rows(Kind.KERNEL)]))
    rows = np.flatnonzero(kernels & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end))
    groups = groups_of(ops.name[rows], ops.start[rows], ops.end[rows])
    own_device = trace.all_device_ops.device == trace.device_index
    key = inspected.device_keys[own_device][rows][groups.longest] if len(rows) else rows
    bounds = recording.kernel_bounds
    roofs = _group_roofs(groups, groups.length, bounds.reached[rows], bounds.bound_by[rows])
    for group in groups.order[:MAX_KERNEL_ROWS].tolist():
        name = trace.names[int(groups.value[group])]
        precision = precision_of(name)
        row = tables.kernels.add(
            name=name[:MAX_KERNEL_NAME_LENGTH],
            regime=KEYS[int(key[group])],
            calls=int(groups.count[group]),
            total_ns=float(groups.total[group]),
            share=float(groups.total[group]) / tables.window_ns,
            mean_ns=float(groups.total[group]) / int(groups.count[group]),
            precision=(precision.dtype or "") if precision else "",
            unit=precision.unit if precision and precision.unit != "unknown" else "",
            begin_ns=float(ops.start[rows][groups.longest[group]]),
            end_ns=float(ops.end[rows][groups.longest[group]]),
        )
        if roofs.is_known[group]:
            row.reached, row.roof = float(roofs.reached[group]), roofs.regime[group]
    tables.kernels_left_out.CopyFrom(groups.left_out(MAX_KERNEL_ROWS))


@dataclass(frozen=True)
class _GroupRoofs:
    """For each group: the roof that bounds most of its time, and the share of that roof that it reaches."""

    is_known: Bools
    reached: Floats
    regime: list[Regime]


def _group_roofs(groups: Groups, time: Ints, reached: Floats, bound_by: Ints) -> _GroupRoofs:
    """Returns the roofs of the groups from the device time, the reached share and the bound of each row."""
    bounded = np.where(bound_by != BoundBy.UNKNOWN, time, 0)
    total, compute = groups.summed(bounded), groups.summed(np.where(bound_by == BoundBy.COMPUTE, time, 0))
    regimes = [Regime.COMPUTE if c * 2 >= t else Regime.MEMORY for c, t in zip(compute, total, strict=True)]
    return _GroupRoofs(total > 0, groups.summed(bounded * reached) / np.maximum(total, 1), regimes)


def add_operators(recording: Recording, tables: pb.Tables) -> None:
    """Adds the operators by name: own time on the host, and time of the kernels that each launched itself."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[recording.in_window(events.start[rows])]
    own = _own_times(recording, rows)
    device, reached, bound_by = _device_times(recording, rows)
    weight = device if recording.on_device else own
    groups = groups_of(events.name[rows], events.start[rows], events.end[rows], weight)
    host, roofs = groups.summed(own), _group_roofs(groups, device, reached, bound_by)
    # Operators without device time follow, ordered by host time.
    order = np.lexsort((-host, -groups.total))
    for group in order[:MAX_KERNEL_ROWS].tolist():
        longest = int(rows[groups.longest[group]])
        row = tables.operators.add(
            name=trace.names[int(groups.value[group])][:MAX_KERNEL_NAME_LENGTH],
            calls=int(groups.count[group]),
            host_ns=float(host[group]),
            device_ns=float(groups.total[group]) if recording.on_device else 0.0,
            share=float(groups.total[group]) / tables.window_ns,
            begin_ns=float(events.start[longest]),
            end_ns=float(events.end[longest]),
        )
        if roofs.is_known[group]:
            row.reached, row.roof = float(roofs.reached[group]), roofs.regime[group]
    tables.operators_left_out.CopyFrom(groups.left_out(MAX_KERNEL_ROWS))


def _own_times(recording: Recording, rows: Rows) -> Ints:
    """Returns the host time of each operator without the operators that it calls, in ns."""
    events, own = recording.trace.events, np.zeros(len(rows), np.int64)
    by_thread = np.argsort(events.thread[rows], kind="stable")  # within a thread they stay in order of start
    cuts = np.flatnonzero(np.diff(events.thread[rows[by_thread]])) + 1
    for of_thread in np.split(by_thread, cuts):
        own[of_thread] = nest(events.start[rows[of_thread]], events.end[rows[of_thread]]).self_times()
    return own


def _device_times(recording: Recording, rows: Rows) -> tuple[Ints, Floats, Ints]:
    """Returns for each operator the time of its device work in ns, the reached share of the roof, and its BoundBy."""
    trace, ops, bounds = recording.trace, recording.trace.device_ops, recording.kernel_bounds
    time, reached = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    bound_by = np.full(len(rows), int(BoundBy.UNKNOWN))
    if not len(ops) or not len(trace.calls) or not len(rows):
        return time, reached, bound_by
    has_operator, operator = trace.calling_operators
    launched = np.flatnonzero(ops.launched & has_operator[ops.call])
    index = np.minimum(np.searchsorted(rows, operator[ops.call[launched]]), len(rows) - 1)
    in_rows = rows[index] == operator[ops.call[launched]]
    launched, index = launched[in_rows], index[in_rows]
    np.add.at(time, index, ops.end[launched] - ops.start[launched])
    reached[index], bound_by[index] = bounds.reached[launched], bounds.bound_by[launched]
    return time, reached, bound_by
