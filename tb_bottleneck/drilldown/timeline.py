"""A stretch of the timeline, as a message: bounded, however long the recording is and whatever it holds."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.drilldown.colour_keys import KEYS
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import Lane
from tb_bottleneck.drilldown.level_of_detail import Blocks, condense
from tb_bottleneck.schema import evidence_pb2 as pb

FEWEST_PIXELS, MOST_PIXELS = 16, 4096
MOST_BLOCKS = 40_000  # of one answer: some 2 MB of JSON
LONGEST_NAME = 300


@dataclass(frozen=True)
class TimeRange:
    """What is asked for: [begin, end) in ns, and how many pixels show it."""

    begin: int
    end: int
    pixels: int


def time_range_of(case: InspectedTrace, begin: float | None, end: float | None, pixels: float | None) -> TimeRange:
    """The stretch, where nothing is said the whole recording; what cannot be is brought to what can."""
    first, last = case.span
    low = first if begin is None else min(max(round(begin), first), last)
    high = last if end is None else min(max(round(end), first), last)
    wanted = FEWEST_PIXELS if pixels is None else round(pixels)
    return TimeRange(low, max(high, low + 1), min(max(wanted, FEWEST_PIXELS), MOST_PIXELS))


def timeline_of(case: InspectedTrace, stretch: TimeRange) -> pb.Timeline:
    """The message. Where there would be too many blocks, they are made coarser until there are not."""
    resolution = (stretch.end - stretch.begin) / stretch.pixels
    lanes = case.lanes
    while True:
        found = [condense(lane, stretch.begin, stretch.end, resolution) for lane in lanes.rows]
        if sum(map(len, found)) <= MOST_BLOCKS or resolution > stretch.end - stretch.begin:
            break
        resolution *= 2
    first, last = case.span
    answer = pb.Timeline(
        begin_ns=stretch.begin,
        end_ns=stretch.end,
        first_ns=first,
        last_ns=last,
        resolution_ns=resolution,
        keys=KEYS,
        lanes_left_out=lanes.left_out,
    )
    names: dict[str, int] = {}
    for lane, blocks in zip(lanes.rows, found, strict=True):
        answer.lanes.append(_lane(lane, blocks, stretch.begin, names))
    answer.names.extend(names)
    return answer


def _lane(lane: Lane, blocks: Blocks, begin: int, names: dict[str, int]) -> pb.Lane:
    length = blocks.end - blocks.start
    told = {row: names.setdefault(lane.names[row][:LONGEST_NAME], len(names)) for row in _named(blocks)}
    return pb.Lane(
        group=lane.group,
        title=lane.title[:LONGEST_NAME],
        track=lane.track,
        depth=lane.depth,
        begin_ns=(blocks.start - begin).tolist(),
        length_ns=length.tolist(),
        key=blocks.key.tolist(),
        name=[told.get(row, -1) for row in blocks.name.tolist()],
        count=blocks.count.tolist(),
        busy=np.minimum(np.round(blocks.busy / np.maximum(length, 1), 3), 1.0).tolist(),
    )


def _named(blocks: Blocks) -> list[int]:
    return [row for row in np.unique(blocks.name).tolist() if row >= 0]
