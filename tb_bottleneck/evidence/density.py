"""A lane, as dense as it can be seen: what is shorter than a pixel is merged with its neighbours."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.evidence.lanes import Lane
from tb_bottleneck.trace.table import Bools, Ints, Rows, Table, column


@dataclass(frozen=True, eq=False)
class Blocks(Table):
    """What is drawn: single things, and runs of short ones merged. Sorted by begin."""

    start: Ints = column("ns", "begin of the first")
    end: Ints = column("ns", "end of the last")
    key: Ints = column("row of KEYS", "of the longest")
    name: Ints = column("row of the lane's names", "of the longest; -1 for none")
    count: Ints = column("count", "how many were merged")
    busy: Ints = column("ns", "sum of their lengths")


def condensed(lane: Lane, begin: int, end: int, resolution: float) -> Blocks:
    """What of the lane lies in [begin, end), things shorter than `resolution` ns merged with those next to them."""
    rows = _rows_in(lane, begin, end)
    start, stop = lane.start[rows], lane.end[rows]
    length = stop - start
    short = length < resolution
    few = np.flatnonzero(short)
    bucket = np.floor((start[few] - begin) / resolution).astype(np.int64)
    first = np.concatenate(([True], bucket[1:] != bucket[:-1])) if len(few) else np.zeros(0, np.bool_)
    blocks = _merged(start[few], stop[few], lane.key[rows][few], lane.name[rows][few], length[few], first)
    near = (blocks.start[1:] - blocks.end[:-1] < resolution) & (blocks.key[1:] == blocks.key[:-1])
    # Neighbours must be neighbours among all: a long thing between two runs keeps them apart.
    near &= np.searchsorted(start[~short], blocks.start[1:]) == np.searchsorted(start[~short], blocks.start[:-1])
    joined = _joined(blocks, np.concatenate(([True], ~near)) if len(blocks) else np.zeros(0, np.bool_))
    long = np.flatnonzero(~short)
    one = np.ones(len(long), np.int64)
    singles = Blocks(start[long], stop[long], lane.key[rows][long], lane.name[rows][long], one, length[long])
    both = [np.concatenate(pair) for pair in zip(_columns(joined), _columns(singles), strict=True)]
    order = np.argsort(both[0], kind="stable")
    return Blocks(*(values[order] for values in both))


def _rows_in(lane: Lane, begin: int, end: int) -> Rows:
    low = int(np.searchsorted(lane.reach, begin, side="right"))
    high = int(np.searchsorted(lane.start, end, side="left"))
    rows = np.arange(low, max(low, high))
    return rows[lane.end[rows] > begin]


def _merged(start: Ints, end: Ints, key: Ints, name: Ints, length: Ints, first: Bools) -> Blocks:
    """Runs as one block each; a run begins where `first` says so."""
    at = np.flatnonzero(first)
    if not len(at):
        return Blocks(*(np.empty(0, np.int64) for _ in range(6)))
    run = np.cumsum(first) - 1
    longest = np.lexsort((length, run))[np.append(at[1:], len(start)) - 1]
    return Blocks(
        start=start[at],
        end=np.maximum.reduceat(end, at),
        key=key[longest],
        name=name[longest],
        count=np.diff(np.append(at, len(start))),
        busy=np.add.reduceat(length, at),
    )


def _joined(blocks: Blocks, first: Bools) -> Blocks:
    """Runs of blocks as one; named after the one with most time."""
    at = np.flatnonzero(first)
    if not len(at):
        return blocks
    run = np.cumsum(first) - 1
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
