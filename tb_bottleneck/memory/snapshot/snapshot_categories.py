"""Categories of blocks that only a snapshot shows: replaced optimizer states, and blocks that were allocated before the
recorded allocator calls (the history)."""

import numpy as np

from tb_bottleneck.memory.block_roles import ALWAYS, Calls, Role
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.trace.table import Ints

_OF_EARLIER = {**ALWAYS, Role.OPTIMIZER: Category.OPTIMIZER, Role.BACKWARD: Category.GRADIENTS}
"""A dict: Role of the allocation -> category, for a block from before the history that exists at its end."""


def without_replaced(calls: Calls, category: Ints, row: int) -> Ints:
    """Returns a copy of `category` in which optimizer states that were replaced by new ones count as temporaries.

    A hand-written optimizer may allocate new states in each step. If the memory event with the index `row` is within
    the optimizer's step, an old state still exists beside the new state. Only blocks that exist after this event are
    changed."""
    blocks = calls.blocks
    states = (category == INDEX[Category.OPTIMIZER]) & blocks.alive(row)
    old = np.flatnonzero(states & blocks.freed & (calls.closed == Role.OPTIMIZER))
    sizes, counts = np.unique(blocks.size[states], return_counts=True)
    kept, kept_counts = np.unique(
        blocks.size[(category == INDEX[Category.OPTIMIZER]) & ~blocks.freed], return_counts=True
    )
    at_end = dict(zip(kept.tolist(), kept_counts.tolist(), strict=True))
    told = category.copy()
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        surplus = count - at_end.get(size, count)
        if surplus > 0:
            told[old[blocks.size[old] == size][:surplus]] = INDEX[Category.TEMPORARIES]
    return told


def categories_of_earlier(role: Ints) -> Ints:
    """Returns the categories of blocks that were allocated before the recorded history and still exist at its end.

    `role` has the Role of the stack that allocated each block. Blocks without a recorded stack remain
    BEFORE_RECORDING."""
    told = np.full(len(role), INDEX[Category.BEFORE_RECORDING], np.int64)
    for kind, category in _OF_EARLIER.items():
        told[role == kind] = INDEX[category]
    return told
