"""The shapes of allocated tensors, as far as the recorded inputs of operators show them."""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.operands import Operands, operands_of
from tb_bottleneck.trace.table import Ints, by_thread
from tb_bottleneck.trace.trace import Trace

Shape = tuple[int, ...]
DEPTH = 5
"""Maximum number of nested operators around an allocation that are considered. For example, linear calls addmm, which
calls expand."""
_ITEM_SIZES = (4, 2, 8, 1, 16)
_MAX_DIMENSIONS = 12


@dataclass(frozen=True)
class Call:
    """One call of an operator during which a block was allocated. `name` is the name of the operator. `operands` has
    the inputs of the call; None if the inputs were not recorded."""

    name: str
    operands: Operands | None

    @cached_property
    def inputs(self) -> tuple[Shape, ...]:
        """Shapes of the tensors among the inputs, including tensors in lists."""
        return tuple(_tensors(self.operands.dims)) if self.operands is not None else ()

    @cached_property
    def product(self) -> tuple[Shape, int] | None:
        """The shape of the result of a matrix product, and the size of the dimension over which the product sums. None
        if the operator is not a matrix product, or the shapes of its inputs do not match."""
        matrices = [shape for shape in self.inputs if len(shape) in (2, 3)]
        if self.name not in _PRODUCTS or len(matrices) < 2:
            return None
        a, b = matrices[-2:]
        if len(a) != len(b) or a[-1] != b[-2] or a[:-2] != b[:-2]:
            return None
        return (*a[:-1], b[-1]), a[-1]

    @cached_property
    def results(self) -> tuple[Shape, ...]:
        """Shapes that the result of the operator may have, the most likely first. The shapes of the inputs are among
        them."""
        stated = [self.product[0]] if self.product is not None else []
        if self.name.startswith(_SIZED) and self.operands is not None and self.operands.concrete:
            sizes = _sizes(self.operands.concrete[0])
            stated += [sizes] if sizes else []
        return (*stated, *self.inputs)


_PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"}
_SIZED = ("aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::rand")


def chains_of(trace: Trace, blocks: Blocks) -> Ints:
    """Returns for each block the event rows of the operators that enclose its allocation, innermost first.

    The result has the shape (blocks, DEPTH). If fewer operators enclose the allocation, the rest of a row is -1."""
    chain = np.full((len(blocks), DEPTH), -1, np.int64)
    own = by_thread(np.arange(len(blocks)), blocks.thread)
    for thread, rows in by_thread(trace.rows(Kind.CPU_OP), trace.events.thread).items():
        mine = own.get(thread)
        if mine is None:
            continue
        nesting = nest(trace.events.start[rows], trace.events.end[rows])
        inside, row = nesting.innermost(blocks.begin[mine])
        for level in range(DEPTH):
            chain[mine[inside], level] = rows[row[inside]]
            parent = nesting.parent[row]
            inside = inside & (parent != row)
            row = parent
    return chain


def shape_in(chain: tuple[Call, ...], size: int, rounding: int = 1) -> tuple[Shape, Call] | None:
    """Returns (shape, call): `call` is the first call in `chain` that can produce a tensor with the size `size`, and
    `shape` is the shape of this tensor. None if no call can produce such a tensor.

    `chain` has the calls around the allocation of the block, innermost first. `size` is the size of the block in bytes,
    rounded up to a multiple of `rounding`."""
    for call in chain:
        for shape in call.results:
            count = math.prod(shape)
            if count and any(0 <= size - count * item < rounding for item in _ITEM_SIZES):
                return shape, call
    return None


class Calls:
    """Decodes the operator calls of a trace. Calls with the same operator and inputs are decoded only once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[tuple[int, int], Call] = {}

    def of(self, row: int) -> Call:
        """Returns the call that is stored in the event row `row` of the trace."""
        events = self._trace.events
        key = int(events.name[row]), int(events.signature[row])
        if key not in self._known:
            operands = operands_of(self._trace.signatures[key[1]])
            self._known[key] = Call(self._trace.names[key[0]], operands)
        return self._known[key]


def _tensors(dims: tuple[object, ...]) -> Iterator[Shape]:
    for dim in dims:
        if isinstance(dim, tuple) and dim:
            if all(isinstance(size, int) for size in dim):
                yield dim
            else:
                yield from _tensors(dim)


@lru_cache(4096)
def _sizes(text: str) -> Shape | None:
    """Returns the sizes in `text`, the text of a list such as "[8, 32]"; None if `text` is not a list of positive
    integers."""
    if len(text) > 200 or not text.startswith("["):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(value, list) or len(value) > _MAX_DIMENSIONS:
        return None
    return tuple(value) if all(type(size) is int and 0 < size < 1 << 40 for size in value) else None
