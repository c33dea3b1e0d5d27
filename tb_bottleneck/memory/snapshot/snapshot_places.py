"""Determines the roles and places of blocks from the stacks of an allocator snapshot."""

import re
from collections.abc import Iterable

import numpy as np

from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.memory.block_roles import Role
from tb_bottleneck.memory.sites import MAX_DEPTH, Place
from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot
from tb_bottleneck.sources.snapshot.snapshot_columns import Frame
from tb_bottleneck.trace.frames import is_user_frame
from tb_bottleneck.trace.table import Bools, Ints

# The roles of stacks, in order of precedence. A stack has a role if the text "file:function" of any of its frames
# matches the pattern of the role. Files are those of torch 2.13. C++ frames have only a function.
_SIGNS = (
    (Role.END_OF_AUTOCAST, re.compile(r"autocast::clear_cache|torch/amp/autocast_mode\.py:__exit__$")),
    (Role.WORKSPACE, re.compile(r"getNewWorkspace|getCUDABlasLtWorkspace|cudnn.*[wW]orkspace")),
    (Role.COMMUNICATION, re.compile(r"torch/distributed/|ProcessGroupNCCL|ncclComm|/fsdp/|c10d::|Reducer")),
    (Role.ZERO_GRAD, re.compile(r":zero_grad$")),
    (Role.OPTIMIZER, re.compile(r"torch/optim/\w+\.py:|:_init_group$|:_optimizer_step|apex/optimizers/")),
    (Role.BACKWARD, re.compile(r"Engine::evaluate_function|torch/autograd/graph\.py:|torch/_tensor\.py:backward|"
                               r"torch/autograd/__init__\.py:backward|Engine::thread_main")),
    (Role.LOADING, re.compile(r"torch/utils/data/|pin_memory")),
    (Role.CONSTRUCTION, re.compile(r":__init__$|torch/nn/modules/module\.py:(?:_apply|to|cuda|convert)$")),
    (Role.FORWARD, re.compile(r":forward$|:_call_impl$|:__call__$")),
)  # fmt: skip


def roles_of(snapshot: AllocatorSnapshot) -> Ints:
    """Returns the Role of each stack of the snapshot.

    Autograd's engine has a thread of its own, without Python frames. A stack without Python frames therefore belongs to
    the engine, even if its C++ frames have no names, as on Windows.
    """
    python = np.array([frame.file.endswith(".py") for frame in snapshot.frames], np.bool_)
    texts = [frame_text(frame) for frame in snapshot.frames]
    matches = np.array([[bool(sign.search(text)) for _, sign in _SIGNS] for text in texts], np.bool_)
    matches = matches.reshape(len(snapshot.frames), len(_SIGNS))
    return np.array([_role(matches, python, stack) for stack in snapshot.stacks], np.int64)


def _role(matches: Bools, python: Bools, stack: Iterable[int]) -> Role:
    rows = list(stack)
    if not rows:
        return Role.UNKNOWN
    found = np.flatnonzero(matches[rows].any(axis=0))
    if len(found):
        return _SIGNS[found[0]][0]
    return Role.OTHER if python[rows].any() or not python.any() else Role.BACKWARD


def frame_text(frame: Frame) -> str:
    """Returns "file:function" of a frame. Backslashes become slashes, so that snapshots from Windows look like those
    from Linux."""
    return f"{frame.file}:{frame.function}".replace("\\", "/")


# Attention that is written with single operators makes a matrix of all pairs of positions; fused kernels do not.
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_SOFTMAX = re.compile(r"softmax", re.IGNORECASE)
_SOFTMAX_OPERATOR = re.compile(r"at::_ops::_?softmax(?:_\w+)?::")
_PRODUCT = re.compile(r"at::_ops::(?:bmm|baddbmm)::")
NEARBY = 20
"""Maximum number of lines between two calls of the same attention. Needed because methods of several classes in one
file may have the same name. A choice."""
_IN_TORCH = re.compile(r"(?:^|[/\\])torch[/\\]")
_FUSED = re.compile(r"scaled_dot_product_(?:flash|efficient|cudnn|fused)|flash_attn|memory_efficient_attention")


def attention_stacks(snapshot: AllocatorSnapshot) -> tuple[Bools, Bools]:
    """Returns two masks of the stacks: stacks inside attention that is not fused, and stacks inside its softmax.

    A function is attention if the text "attention" or "attn" is in its name or in the path of its file, or if it is
    outside of torch and calls both batched matrix products and a softmax within NEARBY lines."""
    texts = [frame_text(frame) for frame in snapshot.frames]
    signs = (_ATTENTION, _SOFTMAX, _FUSED, _PRODUCT, _SOFTMAX_OPERATOR)
    told = [np.array([bool(sign.search(text)) for text in texts], np.bool_) for sign in signs]
    attends, softmax, fused, product, normalises = (
        np.array([mask[list(stack)].any() for stack in snapshot.stacks], np.bool_) for mask in told
    )
    function, line = _calls(snapshot)
    for each in np.intersect1d(function[product], function[normalises & (function >= 0)]).tolist():
        own = np.flatnonzero(function == each)
        near = [_distance(line[own], line[own[sign[own]]]) <= NEARBY for sign in (product, normalises)]
        attends[own] |= near[0] & near[1]
    return attends & ~fused, attends & softmax & ~fused


# Nodes of autograd for the operators of attention (pytorch tools/autograd/derivatives.yaml). Those of linear layers and
# activations are not among them.
_ATTENTION_NODE = re.compile(
    r"\b(?:Softmax|Bmm|Baddbmm|Div|Mul|Exp|Sub|Neg|Add|MaskedFill|Where|NativeDropout)Backward\d*::apply\b"
)

_CAST = re.compile(r"\bautocast::cached_cast\b")


def attention_nodes(snapshot: AllocatorSnapshot) -> Bools:
    """Returns a mask of the stacks: those of nodes of autograd that the operators of attention can have."""
    return _calling(snapshot, _ATTENTION_NODE)


def cast_stacks(snapshot: AllocatorSnapshot) -> Bools:
    """Returns a mask of the stacks: those in which autocast converts a tensor."""
    return _calling(snapshot, _CAST)


def _calling(snapshot: AllocatorSnapshot, function: re.Pattern[str]) -> Bools:
    named = np.array([bool(function.search(frame.function)) for frame in snapshot.frames], np.bool_)
    return np.array([named[list(stack)].any() for stack in snapshot.stacks], np.bool_)


def _distance(values: Ints, others: Ints) -> Ints:
    """Returns for each of `values` its distance to the nearest number in `others`. `others` must not be empty."""
    ordered = np.unique(others)
    after = np.searchsorted(ordered, values)
    nearest = (ordered[np.clip(after - side, 0, len(ordered) - 1)] for side in (0, 1))
    return np.asarray(np.minimum(*(np.abs(values - each) for each in nearest)), np.int64)


def _calls(snapshot: AllocatorSnapshot) -> tuple[Ints, Ints]:
    """Returns two values for each stack: a number that identifies the innermost Python function outside of torch, and
    the line that this function runs. Both are -1 if the stack has no such function."""
    number: dict[tuple[str, str], int] = {}
    of_frame = [
        (number.setdefault((frame.file, frame.function), len(number)), frame.line)
        if frame.file.endswith(".py") and not _IN_TORCH.search(frame.file)
        else (-1, -1)
        for frame in snapshot.frames
    ]
    found = [next((of_frame[row] for row in stack if of_frame[row][0] >= 0), (-1, -1)) for stack in snapshot.stacks]
    function, line = np.array(found, np.int64).reshape(-1, 2).T
    return function, line


LAST_PARTS = 2
"""Number of parts (the last folder and the file) that are kept of a path that shares no folder with other paths."""
# C++ frames of operators and of autograd's nodes (pytorch torchgen/gen.py: at::_ops; tools/autograd/gen_autograd.py).
_OPERATOR = re.compile(r"\bat::_ops::(?!empty|resize_|new_empty)(\w+)::(?:call|redispatch)\b")
_NODE = re.compile(r"\b(\w+Backward\d*)::apply\b")


class SnapshotPlaces:
    """Translates the stacks of a snapshot into places. Stacks with the same operator and the same lines of the program
    have the same place."""

    def __init__(self, snapshot: AllocatorSnapshot) -> None:
        self._snapshot = snapshot
        self._places: list[Place] = []
        self._number: dict[Place, int] = {}
        self._of_stack: dict[int, int] = {}
        self.is_user = [is_user_frame(f"{it.file}({it.line}): {it.function}") for it in snapshot.frames]
        files = {it.file for it, own in zip(snapshot.frames, self.is_user, strict=True) if own}
        self._short = short_paths(files)

    def keys(self, stack: Ints) -> Ints:
        """Returns for each stack number in `stack` the number of its place, as an array with one column."""
        distinct = distinct_values(stack)
        numbers = np.array([self._number_of(number) for number in distinct.tolist()], np.int64)
        return numbers[np.searchsorted(distinct, stack)].reshape(-1, 1)

    def place(self, key: list[int]) -> Place:
        """Returns the place with the key `key`, one row of `keys`."""
        return self._places[key[0]]

    def short(self, file: str) -> str:
        """Returns the path of a file without the folders that all files of the program share."""
        return self._short.get(file) or short_paths([file])[file]

    def _number_of(self, stack: int) -> int:
        if stack not in self._of_stack:
            place = self._decoded(stack)
            if place not in self._number:
                self._number[place] = len(self._places)
                self._places.append(place)
            self._of_stack[stack] = self._number[place]
        return self._of_stack[stack]

    def _decoded(self, stack: int) -> Place:
        """Returns the place of the stack with the number `stack`: the innermost line of the program, its callers, and
        the innermost operator."""
        operator, lines = "", []
        for row in self._snapshot.stacks[stack]:
            frame = self._snapshot.frames[row]
            if not frame.file or not frame.file.endswith(".py"):
                operator = operator or _operator(frame.function)
            elif self.is_user[row]:
                lines.append(frame)
        if not lines:
            return Place(operator=operator)
        inner, callers = lines[0], lines[1 : 1 + MAX_DEPTH]
        path = tuple(f"{self._short[frame.file]}:{frame.line} {frame.function}" for frame in reversed(callers))
        return Place(operator, file=self._short[inner.file], line=inner.line, function=inner.function, path=path)


def short_paths(files: Iterable[str]) -> dict[str, str]:
    """Returns a dict: path -> path without the folders that all paths share. The shared folders have names of users and
    machines, which do not help a reader.

    Windows paths are supported. If there is a single path, or the paths share no folder, each path keeps only its last
    folder."""
    parts = {file: [it for it in file.replace("\\", "/").split("/") if it not in ("", ".")] for file in files}
    for resolved in parts.values():
        while ".." in resolved[1:]:
            at = resolved.index("..", 1)
            del resolved[at - 1 : at + 1]
    folders = [resolved[:-1] for resolved in parts.values()]
    shared = 0
    if len(parts) > 1:
        lengths = zip(*folders, strict=False)
        shared = next((at for at, names in enumerate(lengths) if len(set(names)) > 1), min(map(len, folders)))
    return {file: "/".join(resolved[shared:] if shared else resolved[-LAST_PARTS:]) for file, resolved in parts.items()}


def _operator(function: str) -> str:
    """Returns the name of the operator or the autograd node in `function`, the name of a C++ frame; empty if there is
    none."""
    operator = _OPERATOR.search(function)
    node = _NODE.search(function)
    return f"aten::{operator[1]}" if operator else node[1] if node else ""
