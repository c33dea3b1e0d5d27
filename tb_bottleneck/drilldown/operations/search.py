"""Finds rows of the timeline by their names."""

import numpy as np

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.schema import evidence_pb2 as pb

MAX_FOUND = 1_000
_MAX_NAME_LENGTH = 300


def add_found(inspected: InspectedTrace, text: str, answer: pb.FindAnswer) -> None:
    """Adds the rows on the timeline whose names contain a text, in any case: the first ones, and how many there are."""
    wanted, parts = text.lower(), []
    for number, lane in enumerate(inspected.lanes.rows):
        named = np.flatnonzero(lane.name >= 0)
        occurring = np.unique(lane.name[named], return_counts=True)[0].tolist()
        matching = [name for name in occurring if wanted in lane.names[name].lower()]
        rows = named[np.isin(lane.name[named], matching)]
        parts.append(np.stack([lane.start[rows], lane.end[rows], lane.name[rows], np.full(len(rows), number)], axis=1))
    found = np.concatenate(parts) if parts else np.empty((0, 4), np.int64)
    answer.count = len(found)
    answer.total_ns = float((found[:, 1] - found[:, 0]).sum())
    for begin, end, name, number in found[np.argsort(found[:, 0], kind="stable")[:MAX_FOUND]].tolist():
        lane = inspected.lanes.rows[number]
        answer.rows.add(name=lane.names[name][:_MAX_NAME_LENGTH], track=lane.track, begin_ns=begin, end_ns=end)
