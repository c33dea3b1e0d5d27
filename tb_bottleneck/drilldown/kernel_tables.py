"""Tables of what ran: kernels, and the operators that launched them."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.colour_keys import KEYS
from tb_bottleneck.drilldown.group_by_name import Groups, groups_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.regime import Regime
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows

MOST_ROWS = 300
LONGEST_NAME = 600
_ROOF = {BoundBy.COMPUTE: Regime.COMPUTE, BoundBy.MEMORY: Regime.MEMORY}


def add_kernels(case: InspectedTrace, recording: Recording, answer: pb.Tables) -> None:
    """The kernels, copies left out, by name."""
    trace, ops = recording.trace, recording.trace.device_ops
    kernels = np.isin(ops.name, np.unique(trace.events.name[trace.rows(Kind.KERNEL)]))
    rows = np.flatnonzero(kernels & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end))
    groups = groups_of(ops.name[rows], ops.start[rows], ops.end[rows])
    mine = trace.all_device_ops.device == trace.device_index
    regime = case.device_keys[mine][rows][groups.longest] if len(rows) else rows
    near = _near(groups, groups.length, recording.kernel_bounds.reached[rows], recording.kernel_bounds.bound_by[rows])
    for place in groups.order[:MOST_ROWS].tolist():
        name = trace.names[int(groups.value[place])]
        precision = precision_of(name)
        row = answer.kernels.add(
            name=name[:LONGEST_NAME],
            regime=KEYS[int(regime[place])],
            calls=int(groups.count[place]),
            total_ns=float(groups.total[place]),
            share=float(groups.total[place]) / answer.window_ns,
            mean_ns=float(groups.total[place]) / int(groups.count[place]),
            precision=(precision.dtype or "") if precision else "",
            unit=precision.unit if precision and precision.unit != "unknown" else "",
            begin_ns=float(ops.start[rows][groups.longest[place]]),
            end_ns=float(ops.end[rows][groups.longest[place]]),
        )
        if near.known[place]:
            row.reached, row.roof = float(near.share[place]), near.roof[place]
    answer.kernels_left_out.CopyFrom(groups.left_out(MOST_ROWS))


@dataclass(frozen=True)
class _Near:
    """For each group how near its members come to the roof that bounds most of their time."""

    known: Bools
    share: Floats
    roof: list[Regime]


def _near(groups: Groups, time: Ints, reached: Floats, roof: Ints) -> _Near:
    """From the device time of each row, how near it came to its roof, and which roof that is."""
    known = np.where(roof != BoundBy.UNKNOWN, time, 0)
    total, compute = groups.summed(known), groups.summed(np.where(roof == BoundBy.COMPUTE, time, 0))
    names = [
        _ROOF[BoundBy.COMPUTE] if c * 2 >= t else _ROOF[BoundBy.MEMORY] for c, t in zip(compute, total, strict=True)
    ]
    return _Near(total > 0, groups.summed(known * reached) / np.maximum(total, 1), names)


def add_operators(recording: Recording, answer: pb.Tables) -> None:
    """The operators by name: own time on the host, and time of the kernels that each launched itself."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[recording.in_window(events.start[rows])]
    own = _own_times(recording, rows)
    device, reached, roof = _device_times(recording, rows)
    weight = device if recording.on_device else own
    groups = groups_of(events.name[rows], events.start[rows], events.end[rows], weight)
    host, near = groups.summed(own), _near(groups, device, reached, roof)
    # What did nothing on the device is listed behind, by its host time.
    order = np.lexsort((-host, -groups.total))
    for place in order[:MOST_ROWS].tolist():
        longest = int(rows[groups.longest[place]])
        row = answer.operators.add(
            name=trace.names[int(groups.value[place])][:LONGEST_NAME],
            calls=int(groups.count[place]),
            host_ns=float(host[place]),
            device_ns=float(groups.total[place]) if recording.on_device else 0.0,
            share=float(groups.total[place]) / answer.window_ns,
            begin_ns=float(events.start[longest]),
            end_ns=float(events.end[longest]),
        )
        if near.known[place]:
            row.reached, row.roof = float(near.share[place]), near.roof[place]
    answer.operators_left_out.CopyFrom(groups.left_out(MOST_ROWS))


def _own_times(recording: Recording, rows: Rows) -> Ints:
    """Host time of each operator without those that it calls, in ns."""
    events, own = recording.trace.events, np.zeros(len(rows), np.int64)
    by_thread = np.argsort(events.thread[rows], kind="stable")  # within a thread they stay in order of start
    cuts = np.flatnonzero(np.diff(events.thread[rows[by_thread]])) + 1
    for mine in np.split(by_thread, cuts):
        own[mine] = nest(events.start[rows[mine]], events.end[rows[mine]]).self_times()
    return own


def _device_times(recording: Recording, rows: Rows) -> tuple[Ints, Floats, Ints]:
    """For each operator the time of the device work that it launched, how near it came to a roof, and to which."""
    trace, ops = recording.trace, recording.trace.device_ops
    time, reached = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    roof = np.full(len(rows), int(BoundBy.UNKNOWN))
    if not len(ops) or not len(trace.calls) or not len(rows):
        return time, reached, roof
    called, operator = trace.calling_operators
    known = np.flatnonzero(ops.launched & called[ops.call])
    place = np.minimum(np.searchsorted(rows, operator[ops.call[known]]), len(rows) - 1)
    hit = rows[place] == operator[ops.call[known]]
    known, place = known[hit], place[hit]
    np.add.at(time, place, ops.end[known] - ops.start[known])
    reached[place], roof[place] = recording.kernel_bounds.reached[known], recording.kernel_bounds.bound_by[known]
    return time, reached, roof
