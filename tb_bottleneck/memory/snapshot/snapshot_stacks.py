"""What the stacks of an allocator snapshot say about their blocks."""

import re
from collections.abc import Iterable
from enum import IntEnum

import numpy as np

from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot
from tb_bottleneck.sources.snapshot.snapshot_columns import Frame
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
