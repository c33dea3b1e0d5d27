"""Reduces a lane to the resolution of the screen: events shorter than a pixel are merged with their neighbours."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.drilldown.lanes import Lane
from tb_bottleneck.trace.table import Bools, Ints, Table, column


@dataclass(frozen=True, eq=False)
class LaneBlocks(Table):
    """The blocks to draw: single events, and groups of short ones. Sorted by start."""

    start: Ints = column("ns", "start of the first event")
    end: Ints = column("ns", "end of the last event")
    key: Ints = column("row of KEYS", "of the longest event")
    name: Ints = column("row of the lane's names", "of the longest event; -1 for none")
    count: Ints = column("count", "number of merged events")
    busy: Ints = column("ns", "sum of their lengths")


def condense(lane: Lane, begin: int, end: int, resolution: float) -> LaneBlocks:
    """Returns the blocks in [begin, end); events shorter than `resolution` ns are merged with their neighbours."""
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
    """Returns one block per event that reaches into [begin, end)."""
    low = int(np.searchsorted(lane.reach, begin, side="right"))
    high = int(np.searchsorted(lane.start, end, side="left"))
    rows = np.arange(low, max(low, high))
    rows = rows[lane.end[rows] > begin]
    starts, ends = lane.start[rows], lane.end[rows]
    return LaneBlocks(starts, ends, lane.key[rows], lane.name[rows], np.ones(len(rows), np.int64), ends - starts)


def _merge_runs(blocks: LaneBlocks, with_previous: Bools) -> LaneBlocks:
    """Merges runs of blocks; `with_previous[i]` joins block i + 1 to block i. The longest block gives key and name."""
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
