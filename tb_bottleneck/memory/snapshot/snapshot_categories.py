"""The category of each block of an allocator snapshot: by the stack that allocated it, and by its lifetime."""

import numpy as np

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.snapshot.snapshot_stacks import Role
from tb_bottleneck.trace.table import Bools, Ints

_ALWAYS = {
    Role.WORKSPACE: Category.WORKSPACES,
    Role.COMMUNICATION: Category.COMMUNICATION,
    Role.LOADING: Category.INPUTS,
    Role.CONSTRUCTION: Category.PARAMETERS,
}
_OF_EARLIER = {**_ALWAYS, Role.OPTIMIZER: Category.OPTIMIZER, Role.BACKWARD: Category.GRADIENTS}


def categories_of_calls(blocks: Blocks, role: Ints, updates: Ints) -> Ints:
    """Returns the category of the blocks of recorded calls. `updates` has the times of the optimizer's steps, in ns.

    What a forward pass allocates is an activation if a backward pass runs in its lifetime; what a backward pass
    allocates is a gradient if the optimizer runs in it; what the optimizer allocates is its state if anything else
    allocates in it. Otherwise it is temporary.
    """
    opened, closed = blocks.opened, blocks.closed
    backward = np.sort(opened[(role == Role.BACKWARD) & blocks.known_begin])
    others = np.sort(opened[(role != Role.OPTIMIZER) & blocks.known_begin])
    kept = ~blocks.freed
    through_backward = _contains(backward, opened, closed)
    lasting = {
        Role.FORWARD: (through_backward, Category.ACTIVATIONS),
        Role.BACKWARD: (_contains(updates, blocks.begin, blocks.end) | kept, Category.GRADIENTS),
        Role.OPTIMIZER: (_contains(others, opened, closed) | kept, Category.OPTIMIZER),
    }
    told = np.where(through_backward | kept, INDEX[Category.UNEXPLAINED], INDEX[Category.TEMPORARIES])
    for kind, (lasts, category) in lasting.items():
        told = np.where(role == kind, np.where(lasts, INDEX[category], INDEX[Category.TEMPORARIES]), told)
    for kind, category in _ALWAYS.items():
        told = np.where(role == kind, INDEX[category], told)
    return np.asarray(told, np.int64)


def categories_of_earlier(size: Ints, role: Ints, gradients: Ints, updates: int) -> Ints:
    """Returns the category of blocks from before the recorded calls: by their stack, otherwise by their size.

    Parameters have the sizes of gradients; more blocks of such a size are the optimizer's state. `gradients` has the
    sizes of all recorded gradients, of as many sets as there are `updates`.
    """
    told = np.full(len(size), INDEX[Category.UNEXPLAINED], np.int64)
    for kind, category in _OF_EARLIER.items():
        told[role == kind] = INDEX[category]
    sizes, counts = np.unique(gradients, return_counts=True)
    for each, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        rows = np.flatnonzero((told == INDEX[Category.UNEXPLAINED]) & (size == each))
        of_one_set = max(count // updates, 1)
        told[rows[:of_one_set]] = INDEX[Category.PARAMETERS]
        told[rows[of_one_set:]] = INDEX[Category.OPTIMIZER]
    return told


def _contains(sorted_values: Ints, begin: Ints, end: Ints) -> Bools:
    """Returns for each interval whether one of the values lies in (begin, end)."""
    first = np.searchsorted(sorted_values, begin, side="right")
    return np.asarray(np.searchsorted(sorted_values, end, side="left") > first, np.bool_)
