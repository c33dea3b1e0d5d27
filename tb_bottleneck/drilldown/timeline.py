"""Makes a message of limited size for a time range of the timeline, for recordings of any length.

The rows (lanes) are reduced to the resolution of the screen: events shorter than a pixel are merged with neighbours.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.lanes import KEYS, Lane
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.table import Bools, Ints, Table, column


@dataclass(frozen=True, eq=False)
class LaneBlocks(Table):
    """What is drawn of one row (lane) of the timeline: blocks, sorted by start.

    A block is a single event, or a group of merged short events.
    """

    start: Ints = column("ns", "start of the first event")
    end: Ints = column("ns", "end of the last event")
    key: Ints = column("row of KEYS", "of the longest event")
    name: Ints = column("row of the lane's names", "of the longest event; -1 for none")
    count: Ints = column("count", "number of merged events")
    busy: Ints = column("ns", "sum of their lengths")


def condense(lane: Lane, begin: int, end: int, resolution: float) -> LaneBlocks:
    """Returns the blocks to draw of `lane` between `begin` and `end` (ns).

    Events shorter than `resolution` ns are merged with neighbouring short events.
    """
    blocks = _events_in(lane, begin, end)
    is_short = blocks.busy < resolution
    short, long = blocks.take(is_short), blocks.take(~is_short)
    pixel = np.floor((short.start - begin) / resolution).astype(np.int64)
    groups = _merge_runs(short, pixel[1:] == pixel[:-1])
    near = (groups.start[1:] - groups.end[:-1] < resolution) & (groups.key[1:] == groups.key[:-1])
    # A long event between two groups keeps them separate.
    near &= np.searchsorted(long.start, groups.start[1:]) == np.searchsorted(long.start, groups.start[:-1])
    both = [np.concatenate(pair) for pair in zip(_columns(_merge_runs(groups, near)), _columns(long), strict=True)]
    order = np.argsort(both[0], kind="stable")
    return LaneBlocks(*(values[order] for values in both))


def _events_in(lane: Lane, begin: int, end: int) -> LaneBlocks:
    """Returns the events of `lane` that reach into [begin, end), in ns: one row per event."""
    low = int(np.searchsorted(lane.reach, begin, side="right"))
    high = int(np.searchsorted(lane.start, end, side="left"))
    rows = np.arange(low, max(low, high))
    rows = rows[lane.end[rows] > begin]
    starts, ends = lane.start[rows], lane.end[rows]
    return LaneBlocks(starts, ends, lane.key[rows], lane.name[rows], np.ones(len(rows), np.int64), ends - starts)


def _merge_runs(blocks: LaneBlocks, with_previous: Bools) -> LaneBlocks:
    """Merges consecutive rows of `blocks`. with_previous[i] is True if row i + 1 is merged with row i.

    A merged row has the key and the name of its longest event.
    """
    if not len(blocks):
        return blocks
    first = np.append(True, ~with_previous)
    at, run = np.flatnonzero(first), np.cumsum(first) - 1
    longest = np.lexsort((blocks.busy, run))[np.append(at[1:], len(blocks)) - 1]
    return LaneBlocks(
        start=blocks.start[at],
        end=np.maximum.reduceat(blocks.end, at),
        key=blocks.key[longest],
        name=blocks.name[longest],
        count=np.add.reduceat(blocks.count, at),
        busy=np.add.reduceat(blocks.busy, at),
    )


def _columns(blocks: LaneBlocks) -> list[Ints]:
    return [blocks.start, blocks.end, blocks.key, blocks.name, blocks.count, blocks.busy]


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
    """Returns the range, limited to valid values. `begin` and `end` are in ns.

    None stands for the start of the recording (`begin`), the end of the recording (`end`) or MIN_PIXELS (`pixels`).
    """
    first, last = inspected.span
    low = first if begin is None else min(max(round(begin), first), last)
    high = last if end is None else min(max(round(end), first), last)
    width = MIN_PIXELS if pixels is None else round(pixels)
    return TimeRange(low, max(high, low + 1), min(max(width, MIN_PIXELS), MAX_PIXELS))


def timeline_of(inspected: InspectedTrace, time_range: TimeRange) -> pb.Timeline:
    """Returns the timeline of a time range. The resolution is reduced until at most MAX_BLOCKS blocks are drawn."""
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
    """Returns the message of one row of the timeline. Times in the message are relative to `begin` (ns).

    `names` maps each name of an event to its index in the message of the timeline. New names are added to `names`.
    """
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
