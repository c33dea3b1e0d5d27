"""What the stacks of an allocator snapshot say about its blocks: their roles, places and categories.

A category follows from the stack that allocated the block, and from the block's lifetime.
"""

import re
from collections.abc import Iterable
from enum import IntEnum

import numpy as np

from tb_bottleneck.base.order_statistics import distinct_values
from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.sites import MAX_DEPTH, Place, Site, group_sites
from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot
from tb_bottleneck.sources.snapshot.snapshot_columns import Frame
from tb_bottleneck.trace.frames import is_user_frame
from tb_bottleneck.trace.table import Bools, Ints


class Role(IntEnum):
    """What a stack was doing. UNKNOWN: it has no frames, as backward passes have with stacks="python"."""

    UNKNOWN = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    CONSTRUCTION = 4
    LOADING = 5
    COMMUNICATION = 6
    WORKSPACE = 7
    OTHER = 8


# In order of precedence, each with a pattern of "file:function" that any frame of the stack may match. Files as in
# torch 2.13; C++ frames have a function only.
_SIGNS = (
    (Role.WORKSPACE, re.compile(r"getNewWorkspace|getCUDABlasLtWorkspace|cudnn.*[wW]orkspace")),
    (Role.COMMUNICATION, re.compile(r"torch/distributed/|ProcessGroupNCCL|ncclComm|/fsdp/|c10d::|Reducer")),
    (Role.OPTIMIZER, re.compile(r"torch/optim/\w+\.py:|:_init_group$|:_optimizer_step|apex/optimizers/")),
    (Role.BACKWARD, re.compile(r"Engine::evaluate_function|torch/autograd/graph\.py:|torch/_tensor\.py:backward|"
                               r"torch/autograd/__init__\.py:backward|Engine::thread_main")),
    (Role.LOADING, re.compile(r"torch/utils/data/|pin_memory")),
    (Role.CONSTRUCTION, re.compile(r":__init__$|torch/nn/modules/module\.py:(?:_apply|to|cuda|convert)$")),
    (Role.FORWARD, re.compile(r":forward$|:_call_impl$|:__call__$")),
)  # fmt: skip


def roles_of(snapshot: AllocatorSnapshot) -> Ints:
    """Returns the role of each stack. Each frame is tested once."""
    matches = np.array([[bool(sign.search(_text(frame))) for _, sign in _SIGNS] for frame in snapshot.frames], np.bool_)
    matches = matches.reshape(len(snapshot.frames), len(_SIGNS))
    return np.array([_role(matches, stack) for stack in snapshot.stacks], np.int64)


def _role(matches: Bools, stack: Iterable[int]) -> Role:
    rows = list(stack)
    if not rows:
        return Role.UNKNOWN
    found = np.flatnonzero(matches[rows].any(axis=0))
    return _SIGNS[found[0]][0] if len(found) else Role.OTHER


def _text(frame: Frame) -> str:
    return f"{frame.file}:{frame.function}"


# C++ frames of operators and of autograd's nodes (pytorch torchgen/gen.py: at::_ops; tools/autograd/gen_autograd.py).
_OPERATOR = re.compile(r"\bat::_ops::(?!empty|resize_|new_empty)(\w+)::(?:call|redispatch)\b")
_NODE = re.compile(r"\b(\w+Backward\d*)::apply\b")


class SnapshotPlaces:
    """Decodes the stacks of a snapshot. Stacks with the same operator and the same lines of the program are equal."""

    def __init__(self, snapshot: AllocatorSnapshot) -> None:
        self._snapshot = snapshot
        self._places: list[Place] = []
        self._number: dict[Place, int] = {}
        self._of_stack: dict[int, int] = {}

    def sites(self, size: Ints, stack: Ints, category: Ints) -> list[Site]:
        """Returns the places of blocks with these stacks, the most bytes first."""
        return group_sites(np.column_stack((category, self.keys(stack))), size, self.place)

    def keys(self, stack: Ints) -> Ints:
        """Returns the number of the place of each stack, as a table with one column."""
        distinct = distinct_values(stack)
        numbers = np.array([self._number_of(number) for number in distinct.tolist()], np.int64)
        return numbers[np.searchsorted(distinct, stack)].reshape(-1, 1)

    def place(self, key: list[int]) -> Place:
        """Returns the place with this key."""
        return self._places[key[0]]

    def _number_of(self, stack: int) -> int:
        if stack not in self._of_stack:
            place = self._decoded(stack)
            if place not in self._number:
                self._number[place] = len(self._places)
                self._places.append(place)
            self._of_stack[stack] = self._number[place]
        return self._of_stack[stack]

    def _decoded(self, stack: int) -> Place:
        """Returns the innermost line of the program, its callers, and the innermost operator."""
        operator, lines = "", []
        for frame in self._snapshot.frames_of(stack):
            if not frame.file or not frame.file.endswith(".py"):
                operator = operator or _operator(frame.function)
            elif is_user_frame(f"{frame.file}({frame.line}): {frame.function}"):
                lines.append(frame)
        if not lines:
            return Place(operator=operator)
        inner, callers = lines[0], lines[1 : 1 + MAX_DEPTH]
        path = tuple(f"{frame.file}:{frame.line} {frame.function}" for frame in reversed(callers))
        return Place(operator=operator, file=inner.file, line=inner.line, function=inner.function, path=path)


def _operator(function: str) -> str:
    """Returns the operator or the node of autograd that a C++ frame belongs to, or nothing."""
    operator = _OPERATOR.search(function)
    node = _NODE.search(function)
    return f"aten::{operator[1]}" if operator else node[1] if node else ""


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
