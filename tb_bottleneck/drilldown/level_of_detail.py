"""A lane, as dense as it can be seen: what is shorter than a pixel is merged with its neighbours."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.drilldown.lanes import Lane
from tb_bottleneck.trace.table import Bools, Ints, Table, column


@dataclass(frozen=True, eq=False)
class Blocks(Table):
    """What is drawn: single things, and runs of short ones merged. Sorted by begin."""

    start: Ints = column("ns", "begin of the first")
    end: Ints = column("ns", "end of the last")
    key: Ints = column("row of KEYS", "of the longest")
    name: Ints = column("row of the lane's names", "of the longest; -1 for none")
    count: Ints = column("count", "how many were merged")
    busy: Ints = column("ns", "sum of their lengths")


def condense(lane: Lane, begin: int, end: int, resolution: float) -> Blocks:
    """What of the lane lies in [begin, end), things shorter than `resolution` ns merged with those next to them."""
    things = _things(lane, begin, end)
    short = things.busy < resolution
    few, long = things.take(short), things.take(~short)
    pixel = np.floor((few.start - begin) / resolution).astype(np.int64)
    runs = _joined(few, pixel[1:] == pixel[:-1])
    near = (runs.start[1:] - runs.end[:-1] < resolution) & (runs.key[1:] == runs.key[:-1])
    # Neighbours must be neighbours among all: a long thing between two runs keeps them apart.
    near &= np.searchsorted(long.start, runs.start[1:]) == np.searchsorted(long.start, runs.start[:-1])
    both = [np.concatenate(pair) for pair in zip(_columns(_joined(runs, near)), _columns(long), strict=True)]
    order = np.argsort(both[0], kind="stable")
    return Blocks(*(values[order] for values in both))


def _things(lane: Lane, begin: int, end: int) -> Blocks:
    """Everything that reaches into [begin, end), one by one."""
    low = int(np.searchsorted(lane.reach, begin, side="right"))
    high = int(np.searchsorted(lane.start, end, side="left"))
    rows = np.arange(low, max(low, high))
    rows = rows[lane.end[rows] > begin]
    starts, ends = lane.start[rows], lane.end[rows]
    return Blocks(starts, ends, lane.key[rows], lane.name[rows], np.ones(len(rows), np.int64), ends - starts)


def _joined(blocks: Blocks, along: Bools) -> Blocks:
    """Runs of blocks as one each, named after the one with most time; `along`: whether one goes with that before it."""
    if not len(blocks):
        return blocks
    first = np.append(True, ~along)
    at, run = np.flatnonzero(first), np.cumsum(first) - 1
    most = np.lexsort((blocks.busy, run))[np.append(at[1:], len(blocks)) - 1]
    return Blocks(
        start=blocks.start[at],
        end=np.maximum.reduceat(blocks.end, at),
        key=blocks.key[most],
        name=blocks.name[most],
        count=np.add.reduceat(blocks.count, at),
        busy=np.add.reduceat(blocks.busy, at),
    )


def _columns(blocks: Blocks) -> list[Ints]:
    return [blocks.start, blocks.end, blocks.key, blocks.name, blocks.count, blocks.busy]
