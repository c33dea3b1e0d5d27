"""Sizes of the parameters of a training, and what blocks from before a history are, by sizes that recur.

A history shows what it allocates. Parameters are older, and so are gradients that are kept and the state of the
optimizer. All of them have the sizes of the parameters: for each parameter one block, one more if gradients are kept,
and as many as the optimizer has states (SGD with momentum 1, Adam 2). So it is enough to know how many parameters of
each size there are:

- gradients that the history allocates and an update reads are one set;
- states that the optimizer allocates anew in each step are one set or several;
- otherwise, blocks of the backward pass have the size of each gradient once, and the blocks from before it a multiple.

Weights and states of other types than the parameters are multiples of their sizes: a copy in 32 bits of parameters in
16, states in 8 bits.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.memory.blocks import ROUNDING
from tb_bottleneck.memory.categories import INDEX, WORKSPACE_BYTES, Category
from tb_bottleneck.trace.table import Bools, Ints

MOST_STATES = 3
"""States of an optimizer per parameter: three in Adam with amsgrad (torch/optim/adam.py)."""
AGREES = 0.6
"""Share of the bytes whose sizes recur equally often, from which on this is no chance. A choice."""
SEEN = 0.3
"""Share of the bytes from before a history whose sizes must show how often they recur: blocks of other kinds may have
the size of a parameter by chance. A choice."""
COMPLETE = 0.25
"""Gradients with a smaller part of one state's bytes are not all gradients: the others are kept. A choice."""
MOST_WORKSPACES = 4
"""Two libraries, each on two streams, a choice. More blocks of this size are weights: a matrix of 4,096 x 4,096 numbers
of 16 bits has the size of a workspace on Hopper."""
LARGER = 2.0
COPIES = ((LARGER, 3), (4.0, 3), (0.5, 3), (0.25, 2))
"""Size of a copy / size of a parameter, and how many of them: weights and states in 32 bits beside parameters in 16 or
8, states in 16 bits, states in 8 bits."""

Counts = Mapping[int, int]
"""Number of blocks by their size in bytes."""


class WeightSets(Record, frozen=True, eq=False):
    """The number of `parameters` by size. `gradients_kept` is True if their gradients are older than the history."""

    parameters: Counts
    gradients_kept: bool

    @property
    def bytes(self) -> int:
        """Total bytes of the parameters."""
        return sum(size * count for size, count in self.parameters.items())


def weight_sets(earlier: Ints, gradients: Ints, states: Ints, backward: Iterable[Ints]) -> WeightSets:
    """Returns the parameters by size, derived from the sizes of blocks. All arguments are sizes in bytes.

    `earlier` are the blocks that are older than the history and exist at its end. `gradients` are the gradients of one
    step, `states` the blocks that the optimizer allocated and keeps, and `backward` all blocks that one backward pass
    allocated: those of a step and, as a step may have several passes, those of a pass.
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
    """Returns the categories of blocks from before a history, told by their size where they are `unknown`."""
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
    """Returns True if blocks with these sizes (bytes) have copies of the parameters, or states, of twice their size."""
    return _are_there(_copies(sets, LARGER), _counts(size), LARGER * sets.bytes)


def _copies(sets: WeightSets, factor: float) -> Counts:
    """Returns the number of blocks by size if the parameters were copied to another type."""
    told: dict[int, int] = {}
    for each, count in sets.parameters.items():
        copy = -(-int(each * factor) // ROUNDING) * ROUNDING
        if copy not in sets.parameters and copy > ROUNDING:
            told[copy] = told.get(copy, 0) + count
    return told


def _are_there(copies: Counts, found: Counts, all_bytes: float) -> bool:
    """Returns True if most `copies` have enough blocks, and these are much of the bytes that all would have."""
    complete = sum(copy * count for copy, count in copies.items() if found.get(copy, 0) >= count)
    asked = sum(copy * count for copy, count in copies.items())
    return complete >= AGREES * asked and complete >= SEEN * all_bytes > 0


def _counts(size: Ints) -> dict[int, int]:
    sizes, counts = np.unique(size, return_counts=True)
    return dict(zip(sizes.tolist(), counts.tolist(), strict=True))


def _states_of(states: Counts, before: Counts) -> int:
    """Returns how many states the optimizer keeps for each parameter.

    Without recorded gradients, parameters and their gradients are older: two blocks of each size. Otherwise, Adam's two
    states are more usual than one if all numbers are even.
    """
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
    """Returns how many blocks there are for each parameter; None if the sizes do not agree."""
    votes: dict[int, int] = {}
    for size, count in passed.items():
        sets, rest = divmod(before.get(size, 0), count)
        if size > ROUNDING and sets and not rest:
            votes[sets] = votes.get(sets, 0) + size * before[size]
    best = max(votes, key=lambda sets: votes[sets], default=None)
    known = sum(size * count for size, count in before.items())
    agrees = best is not None and votes[best] >= max(AGREES * sum(votes.values()), SEEN * known)
    return best if agrees else None
