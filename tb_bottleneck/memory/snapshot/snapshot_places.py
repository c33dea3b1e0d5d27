"""The places that allocated the blocks of an allocator snapshot, from their stacks."""

import re

import numpy as np

from tb_bottleneck.base.order_statistics import distinct_values
from tb_bottleneck.memory.sites import MAX_DEPTH, Place, Site, group_sites
from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot
from tb_bottleneck.trace.frames.frame_owner import is_user_frame
from tb_bottleneck.trace.table import Ints

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
