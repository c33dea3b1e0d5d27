"""Groups items into blocks, so that a simulation steps over blocks instead of items.

Within a block, the host does not wait, and all operations are on one stream. Therefore, the effect of the block on the
host's time h and the time f at which the stream becomes free is

    h' = h + advance                advance: sum of gaps and costs
    f' = max(f + busy, h + reach)   busy: sum of pauses and lengths; reach: latest launch, and what follows it

for any h and f (a linear map in the max-plus algebra). `advance`, `busy` and `reach` are computed for all blocks at
once, by cumulative sums and one np.maximum.reduceat. A block ends at an item that waits, or on which another item
depends.
"""

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO
from tb_bottleneck.replay.graph.graph import HOSTLESS, Graph, Items
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.graph.wait_targets import QUEUE
from tb_bottleneck.trace.table import Bools, Ints, rows_by_key

# Largest number of items in a block. The simulation checks once per block whether the queue is full.
LONGEST_BLOCK = 64


class Layout(Record, frozen=True, eq=False):
    """The blocks of a graph. A block is a group of consecutive items that a simulation processes at once.

    All fields have one value per block, except for `block` (the block of each item), `anchor`, and `streams` (the
    number of streams). `first` and `last` are the first and the last item of a block, `stream` is its stream (-1 for
    none). `follows`, `after` and `waits` are the blocks on which the block depends, with the meaning of these columns
    in Items (-1 for none; `follows` may be HOSTLESS). `room` is the block whose end makes room in the queue of the
    stream.
    """

    first: Ints
    last: Ints
    block: Ints  # for each item
    anchor: int  # the item with the judged device's first operation
    follows: list[int]
    stream: list[int]
    after: list[int]
    waits: list[int]
    room: list[int]  # the block whose end makes room in the queue for this one
    streams: int


class Maps(Record, frozen=True, eq=False):
    """The effect of each block on the simulated times, in ns. `advance`, `busy` and `reach` are the terms of the
    formulas in the module docstring. `lag` is the time from the end of the awaited work to the return of the wait."""

    advance: list[int]
    busy: list[int]
    reach: list[int]
    after_reach: list[int]  # from the end of the dependency `after` to the block's own end
    lag: list[int]


def layout_of(graph: Graph) -> Layout:
    """Returns the blocks into which the items of `graph` are grouped."""
    items = graph.items
    judged = np.isin(items.stream, graph.judged)
    anchor = int(np.argmax(judged)) if judged.any() else 0
    begins = _begins(items, anchor)
    block, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    last = np.append(first[1:], len(items)) - 1
    stream = np.full(len(first), NONE)
    stream[block[items.stream >= 0]] = items.stream[items.stream >= 0]

    def of(target: Ints) -> list[int]:
        return list(np.where(target >= 0, block[target], target).tolist())

    return Layout(
        first=first,
        last=last,
        block=block,
        anchor=anchor,
        follows=of(items.follows[first]),
        stream=stream.tolist(),
        after=of(items.after[first]),
        waits=of(items.waits[last]),
        room=_room(items, block, len(first)).tolist(),
        streams=int(items.stream.max(initial=NONE)) + 1,
    )


def maps_of(items: Items, layout: Layout) -> Maps:
    """Returns the effect of each block of `layout` on the simulated times, if its items take the times in `items`."""
    first, last = layout.first, layout.last
    before = np.maximum(first - 1, 0)
    host = np.cumsum(items.gap.total() + items.cost)
    device = np.cumsum(items.pause + items.length)
    host_before = np.where(first > 0, host[before], 0)
    device_before = np.where(first > 0, device[before], 0)
    from_launch = np.maximum(host - items.cost + items.latency + items.length - device, LONG_AGO)
    reach = np.maximum.reduceat(from_launch, first) if len(first) else from_launch
    rest = device[last] - device[first]
    return Maps(
        advance=(host[last] - host_before).tolist(),
        busy=(device[last] - device_before).tolist(),
        reach=np.where(reach > LONG_AGO // 2, reach + device[last] - host_before, LONG_AGO).tolist(),
        after_reach=(items.after_lag[first] + items.length[first] + rest).tolist(),
        lag=items.lag[last].tolist(),
    )


def _begins(items: Items, anchor: int) -> Bools:
    """Returns a mask of the items that begin a block. `anchor` is an item that must end a block, in order that its
    simulated time is known."""
    count = len(items)
    numbers = np.arange(count)
    begins = np.zeros(count, np.bool_)
    begins[:1] = True
    begins |= items.follows != numbers - 1
    begins |= items.after >= 0
    ends = (items.waits >= 0) | items.drains | (items.mark >= 0)
    ends[anchor : anchor + 1] = True
    for target in (items.waits, items.after, items.follows[items.follows != numbers - 1]):
        ends[target[target >= 0]] = True
    begins[1:] |= ends[:-1]
    # The stream used last, for items that use none.
    used = np.maximum.accumulate(np.where(items.stream >= 0, numbers, 0))
    begins[1:] |= (items.stream[1:] >= 0) & (items.stream[used[:-1]] != items.stream[1:])
    since = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    return np.asarray(begins | (since % LONGEST_BLOCK == 0), np.bool_)


def _room(items: Items, block: Ints, blocks: int) -> Ints:
    """Returns per block the block whose end makes room in the queue for its launches; -1 if the queue cannot be full.

    A stream's queue holds QUEUE operations. `block` has the block of each item, `blocks` is the number of blocks.
    """
    room = np.full(blocks, NONE)
    launching = np.flatnonzero((items.stream >= 0) & (items.follows != HOSTLESS))
    for stream in rows_by_key(items.stream[launching]):
        own = block[launching[stream]]
        if len(own) > QUEUE:
            room[own[QUEUE:]] = own[:-QUEUE]
    return room
