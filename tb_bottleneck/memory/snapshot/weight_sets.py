"""Derives the sizes of a training's parameters, and the categories of blocks from before a history, from recurring
sizes.

A history (the recorded allocator calls of a snapshot) shows the allocation only of blocks that are allocated in it.
Parameters are older. Gradients that are kept and the state of the optimizer are older, too. All these blocks have the
sizes of the parameters: there is one block for each parameter, one more if gradients are kept, and one more for each
state of the optimizer (SGD with momentum has 1 state per parameter, Adam 2). It is therefore enough to know how many
parameters of each size there are. A set is a group of blocks with one block per parameter. The number of parameters of
a size comes from the first of these that is possible:

- Gradients that the history allocates and an update reads are one set.
- States that the optimizer allocates anew in each step are one set or several sets.
- A backward pass allocates one block of the size of each gradient. The number of older blocks of that size is a
  multiple of the number of these blocks.

Copies of weights, and states, may have another type than the parameters, for example 32-bit copies of 16-bit parameters
or 8-bit states. The ratio of their sizes to the sizes of the parameters is fixed (COPIES).
"""

from collections.abc import Iterable, Mapping

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.memory.blocks import ROUNDING
from tb_bottleneck.memory.categories import INDEX, WORKSPACE_BYTES, Category
from tb_bottleneck.trace.table import Bools, Ints

MOST_STATES = 3
"""Maximum number of states of an optimizer per parameter: three in Adam with amsgrad (torch/optim/adam.py)."""
AGREES = 0.6
"""Share of the bytes whose sizes must occur the same number of times per parameter, so that this is no chance. A
choice."""
SEEN = 0.3
"""Share of the bytes from before a history whose sizes must show this number of times, because blocks of other kinds
may have the size of a parameter by chance. A choice."""
COMPLETE = 0.25
"""If the gradients in a history have less than this share of the bytes of one state, they are not all gradients: the
others are kept. A choice."""
MOST_WORKSPACES = 4
"""Maximum number of workspaces: two libraries, each on two streams. A choice. If there are more blocks of the size of a
workspace, they are weights: a matrix of 4,096 x 4,096 numbers of 16 bits has the size of a workspace on Hopper."""
LARGER = 2.0
COPIES = ((LARGER, 3), (4.0, 3), (0.5, 3), (0.25, 2))
"""Pairs: size of a copy / size of a parameter, and maximum number of such copies per parameter. The pairs are for
weights and states in 32 bits beside parameters in 16 bits, the same beside parameters in 8 bits, states in 16 bits, and
states in 8 bits."""

Counts = Mapping[int, int]
"""Number of blocks by their size in bytes."""


class WeightSets(Record, frozen=True, eq=False):
    """The parameters of a model by size. `parameters` has the number of parameters by their size in bytes.
    `gradients_kept` is True if the gradients of the parameters were allocated before the history, and are kept."""

    parameters: Counts
    gradients_kept: bool

    @property
    def bytes(self) -> int:
        """Total bytes of the parameters."""
        return sum(size * count for size, count in self.parameters.items())


def weight_sets(earlier: Ints, gradients: Ints, states: Ints, backward: Iterable[Ints]) -> WeightSets:
    """Returns the parameters by size, derived from the sizes of blocks. All arguments are sizes in bytes.

    `earlier` has the blocks that are older than the history and exist at its end, `gradients` the gradients of one
    step, and `states` the blocks that the optimizer allocated and keeps. `backward` yields the blocks that backward
    passes allocated: first those of one step, then those of one pass, because a step may have several passes. The
    result has no parameters if their sizes cannot be derived.
    """
    before, new = _counts(earlier), _counts(states)
    state_sets = _states_of(new, before)
    one_state = int(states.sum()) / state_sets
    if len(gradients) and gradients.sum() >= COMPLETE * one_state:
        return WeightSets(_counts(gradients), False)
    if new:
        has_backward = any(len(each) for each in backward)
        return WeightSets({size: max(round(count / state_sets), 1) for size, count in new.items()}, has_backward)
    for each in backward:
        passed = _counts(each)
        sets = _sets_of(before, passed)
        if sets is not None and sets >= 2:  # parameters and their gradients
            return WeightSets({size: count // sets for size, count in before.items() if size in passed}, True)
    return WeightSets({}, False)


def categories_by_size(size: Ints, unknown: Bools, sets: WeightSets, category: Ints) -> Ints:
    """Returns a copy of `category` in which the blocks in the mask `unknown` have the categories that their sizes
    indicate.

    All blocks are from before the history. `size` has the size of each block in bytes, `category` its category as an
    index into CATEGORIES, and `sets` the parameters by size."""
    told = category.copy()
    kinds = [Category.PARAMETERS, *([Category.GRADIENTS] if sets.gradients_kept else [])]
    kinds += [Category.OPTIMIZER] * MOST_STATES
    for each, count in sets.parameters.items():
        rows = np.flatnonzero(unknown & (size == each))
        for number, kind in enumerate(kinds):
            told[rows[number * count : (number + 1) * count]] = INDEX[kind]
    for factor, most in COPIES:
        copies = _copies(sets, factor)
        rows_of = {copy: np.flatnonzero(unknown & (size == copy) & (told == category)) for copy in copies}
        if _are_there(copies, {copy: len(rows) for copy, rows in rows_of.items()}, factor * sets.bytes):
            for copy, count in copies.items():
                told[rows_of[copy][: most * count]] = INDEX[Category.OPTIMIZER]
    for each in WORKSPACE_BYTES:
        rows = np.flatnonzero(unknown & (size == each) & (told == category))
        if len(rows) <= MOST_WORKSPACES:
            told[rows] = INDEX[Category.WORKSPACES]
    return told


def has_larger_copies(size: Ints, sets: WeightSets) -> bool:
    """Returns True if blocks with the sizes `size` (bytes) include copies or states of the parameters in `sets` that
    are twice as large as the parameters."""
    return _are_there(_copies(sets, LARGER), _counts(size), LARGER * sets.bytes)


def _copies(sets: WeightSets, factor: float) -> Counts:
    """Returns a dict: size in bytes -> number of blocks that there would be if all parameters in `sets` were copied to
    a type that is `factor` times as large. Sizes that are also sizes of parameters are left out."""
    told: dict[int, int] = {}
    for each, count in sets.parameters.items():
        copy = -(-int(each * factor) // ROUNDING) * ROUNDING
        if copy not in sets.parameters and copy > ROUNDING:
            told[copy] = told.get(copy, 0) + count
    return told


def _are_there(copies: Counts, found: Counts, all_bytes: float) -> bool:
    """Returns True if most of the blocks in `copies` are in `found`. Both have the number of blocks by size in bytes.

    A size counts if `found` has at least as many blocks of this size as `copies`. The sizes that count must have at
    least the fraction AGREES of the bytes of `copies`, and at least the fraction SEEN of `all_bytes`."""
    complete = sum(copy * count for copy, count in copies.items() if found.get(copy, 0) >= count)
    asked = sum(copy * count for copy, count in copies.items())
    return complete >= AGREES * asked and complete >= SEEN * all_bytes > 0


def _counts(size: Ints) -> dict[int, int]:
    sizes, counts = np.unique(size, return_counts=True)
    return dict(zip(sizes.tolist(), counts.tolist(), strict=True))


def _states_of(states: Counts, before: Counts) -> int:
    """Returns how many states the optimizer keeps for each parameter. `states` are the blocks that the optimizer
    allocated, `before` the blocks from before the history; both have the number of blocks by size in bytes.

    If `before` has both the parameters and their gradients, it has two blocks for each parameter. The numbers of blocks
    in `states` and `before` then give the result. Otherwise, the result is 2 (as with Adam) if most numbers in `states`
    are even, else 1."""
    votes = {
        sets: sum(size * count for size, count in states.items() if count * 2 == sets * before.get(size, 0))
        for sets in range(1, MOST_STATES + 1)
    }
    total = sum(size * count for size, count in states.items())
    best = max(votes, key=lambda sets: votes[sets])
    if total and votes[best] >= AGREES * total:
        return best
    even = sum(size * count for size, count in states.items() if count % 2 == 0)
    return 2 if even >= AGREES * total else 1


def _sets_of(before: Counts, passed: Counts) -> int | None:
    """Returns how many blocks in `before` there are for each block in `passed` of the same size; None if different
    sizes give different results.

    `before` has the blocks from before the history, `passed` those of one backward pass; both have the number of blocks
    by size in bytes."""
    votes: dict[int, int] = {}
    for size, count in passed.items():
        sets, rest = divmod(before.get(size, 0), count)
        if size > ROUNDING and sets and not rest:
            votes[sets] = votes.get(sets, 0) + size * before[size]
    best = max(votes, key=lambda sets: votes[sets], default=None)
    known = sum(size * count for size, count in before.items())
    agrees = best is not None and votes[best] >= max(AGREES * sum(votes.values()), SEEN * known)
    return best if agrees else None
