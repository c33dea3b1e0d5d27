"""Determines the category of each block of memory in a trace or a snapshot. A block is an allocated piece of memory
from its allocation to its free.

The category follows from the roles of the allocation and of the free (what the program was doing at these times), and
from what happens between them:

forward   |== activation, freed by autograd's engine ==================|
          |= temporary =|      |= temporary =|
backward                                       |== gradient, read by the optimizer ==|
                                               |= temporary =|
optimizer                                                               |= temporary =|
                                                                        |== state, never freed ========
"""

from enum import IntEnum

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.trace.table import Bools, Ints

LEAST_BLOCKS, MOSTLY, MOST_GROWTH = 4, 0.8, 1.5
"""A place in the program allocates a growing cache if it allocates at least LEAST_BLOCKS blocks, at least half of them
are freed, and at least the share MOSTLY of the freed blocks were replaced by a larger block, which is at most
MOST_GROWTH times as large. A choice; a cache of keys and values grows by one position in each pass."""
TEARDOWN = 12
"""Minimum number of consecutive frees that indicate the end of an autograd graph. A function that returns frees fewer
tensors. A choice."""


class Role(IntEnum):
    """What the program was doing when it allocated or freed a block of memory.

    UNKNOWN means that the recording does not show this. For example, if a snapshot was recorded with stacks="python",
    its stacks in backward passes have no frames."""

    UNKNOWN = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    CONSTRUCTION = 4
    LOADING = 5
    COMMUNICATION = 6
    WORKSPACE = 7
    OTHER = 8
    ZERO_GRAD = 9
    END_OF_AUTOCAST = 10


ALWAYS = {
    Role.WORKSPACE: Category.WORKSPACES,
    Role.COMMUNICATION: Category.COMMUNICATION,
    Role.LOADING: Category.INPUTS,
    Role.CONSTRUCTION: Category.PARAMETERS,
}
_FREED_EARLIER = {
    Role.BACKWARD: Category.ACTIVATIONS,
    Role.OPTIMIZER: Category.OPTIMIZER,
    Role.ZERO_GRAD: Category.GRADIENTS,
    Role.LOADING: Category.INPUTS,
}
"""A dict: Role of the free -> category, for a block that was allocated before the recorded calls."""


class Calls(Record, frozen=True, eq=False):
    """The blocks of the recorded allocator calls, with the Role of the allocation and of the free of each block."""

    blocks: Blocks
    opened: Ints
    """The Role of the allocation of each block; UNKNOWN for blocks that were allocated before the recorded calls."""

    closed: Ints
    """The Role of the free of each block; UNKNOWN if the block is not freed, or the stack of the free was not
    recorded."""

    updates: Ints
    """Times of the optimizer's steps, in ns."""

    brief: Bools | None = None
    """True for blocks that are freed in the phase (such as a forward pass) that allocates them. In a run without
    training, a forward pass has no end, and the outermost operator counts instead. None if the recording does not have
    the times of phases; the calls between allocation and free then show whether a block is temporary."""


def categories_of_calls(calls: Calls) -> Ints:
    """Returns the category of each block of `calls`, as an index into CATEGORIES (memory/categories.py)."""
    blocks, opened, closed = calls.blocks, calls.opened, calls.closed
    kept = ~blocks.freed
    backward = np.sort(blocks.opened[(opened == Role.BACKWARD) & blocks.known_begin])
    others = np.sort(blocks.opened[(opened != Role.OPTIMIZER) & blocks.known_begin])
    through_backward = _contains(backward, blocks.opened, blocks.closed)
    by_engine = closed == Role.BACKWARD
    read = _contains(calls.updates, blocks.begin, blocks.end) | np.isin(closed, (Role.OPTIMIZER, Role.ZERO_GRAD))
    waits = through_backward | by_engine | kept | _torn_down(blocks, closed) if calls.brief is None else ~calls.brief
    lasting = {
        Role.FORWARD: (waits, Category.ACTIVATIONS),
        Role.BACKWARD: (read | kept, Category.GRADIENTS),
        Role.OPTIMIZER: (_contains(others, blocks.opened, blocks.closed) | kept, Category.OPTIMIZER),
    }
    # For blocks with other roles: outside of a forward pass, a program makes batches and losses. A block that autograd
    # frees belongs to a loss.
    other = np.select(
        [by_engine, through_backward & ~kept, through_backward | kept],
        [INDEX[Category.ACTIVATIONS], INDEX[Category.INPUTS], INDEX[Category.UNEXPLAINED]],
        INDEX[Category.TEMPORARIES],
    )
    told = np.asarray(other, np.int64)
    for role, (lasts, category) in lasting.items():
        told = np.where(opened == role, np.where(lasts, INDEX[category], INDEX[Category.TEMPORARIES]), told)
    if calls.brief is not None:
        told = np.where(calls.brief, INDEX[Category.TEMPORARIES], told)
    for role, category in ALWAYS.items():
        told = np.where(opened == role, INDEX[category], told)
    earlier = np.full(len(blocks), INDEX[Category.BEFORE_RECORDING], np.int64)
    for role, category in _FREED_EARLIER.items():
        earlier[closed == role] = INDEX[category]
    return np.asarray(np.where(blocks.known_begin, told, earlier), np.int64)


def caches(calls: Calls, place: Ints) -> Bools:
    """Returns a mask of the blocks that belong to caches that grow in each pass, such as a cache of keys and values.

    `place` has one number per block, which identifies the place in the program that allocated the block."""
    by_program = np.isin(calls.opened, (Role.FORWARD, Role.OTHER)) & (calls.closed != Role.BACKWARD)
    return np.asarray(by_program & _grows_in_turn(calls.blocks, place), np.bool_)


def _grows_in_turn(blocks: Blocks, place: Ints) -> Bools:
    """Returns a mask of the blocks that belong to growing caches. A cache is recognised by the place in the program
    that allocates it (the number in `place`): this place allocates a larger block each time, and the previous block is
    then freed. The limits are LEAST_BLOCKS, MOSTLY and MOST_GROWTH."""
    found = np.zeros(len(blocks), np.bool_)
    rows = np.flatnonzero(blocks.known_begin)
    rows = rows[np.lexsort((blocks.opened[rows], place[rows]))]
    edges, freed = np.flatnonzero(np.diff(place[rows])) + 1, blocks.freed
    for own in np.split(rows, edges):
        if len(own) < LEAST_BLOCKS:
            continue
        old = np.flatnonzero(freed[own])
        if 2 * len(old) < len(own):
            continue
        newest = np.searchsorted(blocks.opened[own], blocks.closed[own][old]) - 1
        size, larger = blocks.size[own][old], blocks.size[own][newest]
        grown = (newest > old) & (larger > size) & (larger <= MOST_GROWTH * size)
        if grown.mean() >= MOSTLY and len(np.unique(newest[grown])) == grown.sum():
            found[own] = True
    return found


def _torn_down(blocks: Blocks, closed: Ints) -> Bools:
    """Returns a mask of the blocks that are freed in a long sequence of frees, as at the end of an autograd graph.

    `closed` has the Role of the free of each block. Casts of weights are not included: the end of autocast frees them
    in a sequence, too."""
    freed = blocks.freed & (closed != Role.END_OF_AUTOCAST)
    rows = np.zeros(int(max(blocks.opened.max(initial=0), blocks.closed.max(initial=0))) + 2, np.bool_)
    rows[blocks.closed[freed]] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([False], rows, [False])).astype(np.int8)))
    long = edges.reshape(-1, 2)
    long = long[long[:, 1] - long[:, 0] >= TEARDOWN]
    inside = np.zeros(len(rows) + 1, np.int64)
    inside[long[:, 0]] += 1
    inside[long[:, 1]] -= 1
    return np.asarray(freed & (np.cumsum(inside)[blocks.closed] > 0), np.bool_)


def _contains(sorted_values: Ints, begin: Ints, end: Ints) -> Bools:
    """Returns a mask: True for the intervals (begin[i], end[i]) that contain at least one of `sorted_values`."""
    first = np.searchsorted(sorted_values, begin, side="right")
    return np.asarray(np.searchsorted(sorted_values, end, side="left") > first, np.bool_)
