"""The table of collectives and messages, by operation, process group and size."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.group_by_name import groups_of
from tb_bottleneck.jobs.report.group_rows import bus_factor
from tb_bottleneck.jobs.summary.communication_rows import communications_of
from tb_bottleneck.jobs.summary.process_groups import GroupTable
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.units import NS_PER_S

MAX_COMMUNICATION_ROWS = 200
_PAIR = 2


def add_communications(recording: Recording, tables: pb.Tables) -> None:
    """Adds the communications of the window.

    A recording of one rank cannot tell the transfer from the wait for other ranks: the bandwidths are lower bounds.
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
