"""Finds the calls of modules in a snapshot, from the stacks of the blocks that they allocate.

A snapshot has neither modules nor the times of calls. But in a stack, the frame of the line that calls a module is
followed by the frame of the module's `forward`. From one allocation to the next, the line in this `forward` usually
becomes larger. A new call begins where the line goes back to the first line that allocates. A loop within the `forward`
goes back only to a later line:

    model.py:41 forward     for block in self.blocks: hidden = block(hidden)
    model.py:20 forward         normed = self.norm(hidden)         first call
    model.py:22 forward         hidden = hidden + self.mlp(normed)
    model.py:20 forward         normed = self.norm(hidden)         second call
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.memory.block_roles import Role
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory, passes_before
from tb_bottleneck.sources.snapshot.snapshot_columns import Frame
from tb_bottleneck.trace.table import Ints, Rows

MAX_CLASSES = 64
"""Maximum number of classes of modules that are examined: those with the most blocks. Models have about ten classes."""
_DISPATCH = "torch/nn/modules/module.py"
"""The file of the frames between the call of a module and the module's `forward`."""

Call = tuple[Rows, int]


class RepeatedModule(Record, frozen=True, eq=False):
    """A class of modules that is called several times in a forward pass.

    `caller` is the line of the program (FILE:LINE) that calls modules of the class; of several such lines, the one
    whose modules keep the most bytes. `calls` has a pair for each call: the rows of the blocks that the call keeps,
    except the last one, which is the result of the call; and the row of the last allocation of the call in the memory
    events. `depth` is the number of stack frames around a call."""

    caller: str
    depth: int
    calls: tuple[Call, ...]


def repeated_calls(memory: SnapshotMemory) -> Iterator[RepeatedModule]:
    """Yields the classes of modules with several calls in one forward pass, the innermost first."""
    blocks = memory.blocks
    forward = np.flatnonzero(blocks.known_begin & (memory.calls.opened == Role.FORWARD))
    forward = forward[np.argsort(blocks.opened[forward], kind="stable")]
    number = passes_before(memory.calls.opened, blocks.opened)
    kept = (memory.category == INDEX[Category.ACTIVATIONS]) & blocks.freed
    sites = _sites(memory, set(memory.stack[forward].tolist()))
    classes: dict[tuple[str, ...], RepeatedModule] = {}
    passes = len(np.unique(number[forward]))
    of_stack = np.bincount(memory.stack[forward], minlength=len(memory.snapshot.stacks))
    blocks_of = {key: int(of_stack[list(site_of)].sum()) for key, site_of in sites.items()}
    for key in sorted(sites, key=lambda key: -blocks_of[key])[:MAX_CLASSES]:
        site_of = sites[key]
        own = forward[np.isin(memory.stack[forward], list(site_of))]
        place = np.array([site_of[stack] for stack in memory.stack[own].tolist()], np.int64)
        calls = []
        for rows in _split(own, place, number[own], memory.stack[own]):
            last = int(blocks.opened[rows[-1]])
            inside = rows[kept[rows] & (blocks.closed[rows] > last)]
            calls.append((inside[:-1], last))
        if len(calls) > passes:
            size = np.where(kept[own], blocks.size[own], 0) + 1
            most = np.bincount(place[:, 0], size).argmax()
            stack = next(stack for stack, (caller, _) in site_of.items() if caller == most)
            classes[key] = RepeatedModule(*_calling_line(memory, stack, key), tuple(calls))
    yield from sorted(classes.values(), key=lambda it: -it.depth)


def _calling_line(memory: SnapshotMemory, stack: int, key: tuple[str, ...]) -> tuple[str, int]:
    """Returns the line of the program (FILE:LINE) that calls a module of the class `key` in the stack with the number
    `stack`, and the number of frames around the call.

    If the stack has several such calls, the outermost call counts. If the call is not in a file of the program, the
    line is that of the innermost frame of the program around the call."""
    path = _path(memory, stack)
    frames = [memory.snapshot.frames[row] for row in path]
    calls = (at for at in range(1, len(path)) if frames[at].function == "forward")
    depth = next(at for at in calls if _key(frames[at - 1], frames[at]) == key)
    own = [frame for row, frame in zip(path[:depth], frames[:depth], strict=True) if memory.places.is_user[row]]
    frame = own[-1] if own else frames[depth - 1]
    return f"{memory.places.short(frame.file)}:{frame.line}", depth


def _path(memory: SnapshotMemory, stack: int) -> list[int]:
    """Returns the Python frames of a stack, outermost first, as rows of the snapshot's frames. `stack` is the number of
    the stack. Frames of torch between the call of a module and its `forward` are left out."""
    frames = memory.snapshot.frames
    python = [row for row in memory.snapshot.stacks[stack] if frames[row].file.endswith(".py")]
    return [row for row in reversed(python) if _DISPATCH not in frames[row].file.replace("\\", "/")]


def _key(caller: Frame, callee: Frame) -> tuple[str, ...]:
    return caller.file, caller.function, callee.file


def _sites(memory: SnapshotMemory, stacks: set[int]) -> dict[tuple[str, ...], dict[int, tuple[int, int]]]:
    """Returns a dict: class of modules -> stack -> (number of the calling place, line in `forward`).

    A class is a tuple of the file and function of the caller, and the file of `forward`. A calling place is the whole
    path of frames up to the call. `stacks` has the numbers of the stacks to search."""
    found: defaultdict[tuple[str, ...], dict[int, tuple[int, int]]] = defaultdict(dict)
    numbers: dict[tuple[int, int], int] = {}  # of a path, by the number of its outer part and its last frame
    for stack in stacks:
        path, place = _path(memory, stack), -1
        for row, following in pairwise(path):
            place = numbers.setdefault((place, row), len(numbers))
            caller, callee = memory.snapshot.frames[row], memory.snapshot.frames[following]
            if callee.function == "forward":
                found[_key(caller, callee)].setdefault(stack, (place, callee.line))  # the outermost, if nested
    return found


def _split(rows: Rows, place: Ints, number: Ints, stack: Ints) -> Iterator[Rows]:
    """Yields the rows of the blocks of each call. All arguments have one entry per block of one class of modules, in
    the order of allocation: `rows` has the row of the block, `place` the number of the calling place and the line in
    `forward` (two columns), `number` the number of the forward pass, and `stack` the number of the stack.

    If no second call can be seen in a pass, as with a `forward` of one line, a call is the shortest sequence of stacks
    whose repetition gives the pass.
    """
    caller, line = place.T
    others = np.flatnonzero((np.diff(caller) != 0) | (np.diff(number) != 0)) + 1
    back = np.flatnonzero(np.diff(line) < 0) + 1
    edges = [0]
    for at, is_other in sorted({**dict.fromkeys(back.tolist(), False), **dict.fromkeys(others.tolist(), True)}.items()):
        if is_other or line[at] <= line[edges[-1]]:
            edges.append(at)
    blocks_of_pass = np.bincount(number)
    for begin, end in pairwise([*edges, len(rows)]):
        if end - begin < blocks_of_pass[number[begin]]:
            yield rows[begin:end]
        else:
            yield from np.split(rows[begin:end], (end - begin) // _period(stack[begin:end]))


def _period(values: Ints) -> int:
    """Returns the length of the shortest sequence that gives `values` when it is repeated."""
    size = len(values)
    for length in range(1, size // 2 + 1):
        if size % length == 0 and (values[length:] == values[:-length]).all():
            return length
    return size
