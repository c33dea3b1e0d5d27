"""A time range of the timeline, as a message of bounded size, for recordings of any length and content."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS, Lane
from tb_bottleneck.drilldown.level_of_detail import LaneBlocks, condense
from tb_bottleneck.schema import evidence_pb2 as pb

MIN_PIXELS, MAX_PIXELS = 16, 4096
MAX_BLOCKS = 40_000  # per message: about 2 MB of JSON
MAX_LABEL_LENGTH = 300


@dataclass(frozen=True)
class TimeRange:
    """The requested range [begin, end), in ns, and its width on the screen in pixels."""

    begin: int
    end: int
    pixels: int


def time_range_of(inspected: InspectedTrace, begin: float | None, end: float | None, pixels: float | None) -> TimeRange:
    """Returns the range, clipped to valid values; by default, the whole recording."""
    first, last = inspected.span
    low = first if begin is None else min(max(round(begin), first), last)
    high = last if end is None else min(max(round(end), first), last)
    width = MIN_PIXELS if pixels is None else round(pixels)
    return TimeRange(low, max(high, low + 1), min(max(width, MIN_PIXELS), MAX_PIXELS))


def timeline_of(inspected: InspectedTrace, time_range: TimeRange) -> pb.Timeline:
    """Returns the message. The resolution is reduced until there are at most MAX_BLOCKS blocks."""
    begin, end = time_range.begin, time_range.end
    resolution = (end - begin) / time_range.pixels
    lanes = inspected.lanes
    while True:
        blocks_of_lanes = [condense(lane, begin, end, resolution) for lane in lanes.rows]
        if sum(map(len, blocks_of_lanes)) <= MAX_BLOCKS or resolution > end - begin:
            break
        resolution *= 2
    first, last = inspected.span
    timeline = pb.Timeline(
        begin_ns=begin,
        end_ns=end,
        first_ns=first,
        last_ns=last,
        resolution_ns=resolution,
        keys=KEYS,
        lanes_left_out=lanes.left_out,
    )
    names: dict[str, int] = {}
    for lane, blocks in zip(lanes.rows, blocks_of_lanes, strict=True):
        timeline.lanes.append(_lane(lane, blocks, begin, names))
    timeline.names.extend(names)
    return timeline


def _lane(lane: Lane, blocks: LaneBlocks, begin: int, names: dict[str, int]) -> pb.Lane:
    """Returns the message of a lane; adds the names of its blocks to `names`, which maps each to its index."""
    length = blocks.end - blocks.start
    rows = [row for row in np.unique(blocks.name).tolist() if row >= 0]
    index = {row: names.setdefault(lane.names[row][:MAX_LABEL_LENGTH], len(names)) for row in rows}
    return pb.Lane(
        group=lane.group,
        title=lane.title[:MAX_LABEL_LENGTH],
        track=lane.track,
        depth=lane.depth,
        begin_ns=(blocks.start - begin).tolist(),
        length_ns=length.tolist(),
        key=blocks.key.tolist(),
        name=[index.get(row, -1) for row in blocks.name.tolist()],
        count=blocks.count.tolist(),
        busy=np.minimum(np.round(blocks.busy / np.maximum(length, 1), 3), 1.0).tolist(),
    )
