"""The table of what is on the critical path."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.group_by_name import groups_of
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS
from tb_bottleneck.drilldown.operations.critical_path import critical_path
from tb_bottleneck.intervals import overlapping
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.schema import evidence_pb2 as pb

MAX_CRITICAL_ROWS = 100
_MAX_NAME_LENGTH = 600


def add_critical_path(inspected: InspectedTrace, recording: Recording, tables: pb.Tables) -> None:
    """Adds the parts of the critical path by name of the operation; those of the host by the owner of the idle time."""
    path, trace = critical_path(recording), recording.trace
    ops, owned = trace.all_device_ops, recording.owned_spans
    on_device = np.flatnonzero(path.op >= 0)
    host = np.flatnonzero(path.op < 0)
    part, span = overlapping(path.begin[host], path.end[host], owned.start, owned.end)
    begin = np.concatenate((path.begin[on_device], np.maximum(path.begin[host][part], owned.start[span])))
    end = np.concatenate((path.end[on_device], np.minimum(path.end[host][part], owned.end[span])))
    # Operations have the numbers of their names, the owners of the host's time follow.
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
