"""Decides which blocks grow with the number of samples in a step, for predictions of the peak with another batch
size."""

import math
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.memory.blocks import ROUNDING
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.forecast.allocation_shapes import Call, Calls, Shape, chains_of, shape_in
from tb_bottleneck.memory.phases import Phase
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Ints

# Operators that models begin with, and the index of the input that has the samples in its first dimension.
_FIRST_LAYERS = {
    "aten::conv1d": 0, "aten::conv2d": 0, "aten::conv3d": 0, "aten::embedding": 1, "aten::linear": 0,
}  # fmt: skip
_MAX_TRIED = 8


def samples_of(memory: TraceMemory) -> int | None:
    """Returns the number of samples in a forward pass, from the shape of the first layer's input; None if no such shape
    was recorded."""
    trace = memory.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], _FIRST_LAYERS.__contains__)]
    rows = rows[memory.phases.phase[memory.phases.at(trace.events.start[rows])] == Phase.FORWARD]
    for row in rows[:_MAX_TRIED].tolist():
        operands = operands_of(trace.signatures[trace.events.signature[row]])
        index = _FIRST_LAYERS[trace.names[trace.events.name[row]]]
        if operands is not None and index < len(operands.dims):
            shape = operands.dims[index]
            if len(shape) > 1 and isinstance(shape[0], int) and shape[0] > 0:
                return shape[0]
    return None


_COPIES = re.compile(r"^aten::(?:to|_to_copy|copy_|clone|contiguous|t|transpose|empty\w*|_reshape_alias)$")
_STEP = re.compile(r"^Optimizer\.step#")
_FIXED_CATEGORIES = (Category.PARAMETERS, Category.GRADIENTS, Category.OPTIMIZER, Category.COMMUNICATION)
_FIXED_PHASES = (Phase.OPTIMIZER, Phase.ZERO_GRAD)
# The samples may be the first dimension, the second in [time, batch, features], or the third in [3, time, batch,
# features], the shape in which multi-head attention keeps its queries, keys and values.
_BATCH_DIMENSIONS = 3


@dataclass(frozen=True, eq=False)
class BatchScaling:
    """Two masks of the blocks. `grows` is True if the size of the block is proportional to the number of samples.
    `sure` is True if the value in `grows` is certain, for example because recorded shapes prove it."""

    grows: Bools
    sure: Bools


class ScalingRules:
    """Decides which blocks of one recording grow with the batch size. `samples` is the number of samples in a forward
    pass."""

    def __init__(self, memory: TraceMemory, samples: int) -> None:
        self._memory = memory
        self._samples = samples
        self._calls = Calls(memory.trace)

    def scaling(self) -> BatchScaling:
        """Returns for each block whether the block grows with the batch size. Only one of several blocks with equal
        calls around their allocations, equal categories, phases and sizes is examined."""
        memory, blocks = self._memory, self._memory.blocks
        phase = memory.phases.phase[memory.phases.at(blocks.begin)]
        chain = chains_of(memory.trace, blocks)
        events = memory.trace.events
        known = chain >= 0
        names = np.where(known, events.name[chain], -1)
        signatures = np.where(known, events.signature[chain], -1)
        keys = np.concatenate((np.stack((memory.category, phase, blocks.size), axis=1), names, signatures), axis=1)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        told = np.array([self._decide(row, int(phase[row]), chain[row]) for row in first.tolist()], np.bool_)
        told = told.reshape(-1, 2)[which.reshape(-1)]
        earlier = ~blocks.known_begin
        activations = memory.category == INDEX[Category.ACTIVATIONS]
        return BatchScaling(np.where(earlier, activations, told[:, 0]), earlier | told[:, 1])

    def _decide(self, row: int, phase: int, chain: Ints) -> tuple[bool, bool]:
        category = int(self._memory.category[row])
        if category in _FIXED or phase in _FIXED_PHASES:
            return False, True
        calls = tuple(self._calls.of(at) for at in chain.tolist() if at >= 0)
        size = int(self._memory.blocks.size[row])
        found = shape_in(calls, size, 1 if self._memory.on_cpu else ROUNDING)
        if found is None:
            return self._without_shape(size, phase)
        shape, call = found
        if len(shape) == 1 and shape not in self._parameters and shape[0] > _longest(calls):
            return self._without_shape(size, phase)  # a buffer whose use only a library knows
        return self._with_shape(shape, call, phase)

    def _without_shape(self, size: int, phase: int) -> tuple[bool, bool]:
        """Returns (grows, sure) for a block of `size` bytes whose shape is unknown. `phase` is the Phase of its
        allocation.

        If the block is allocated in the backward pass and has the size of a parameter, it does not grow (not sure). If
        it has less than a byte per sample, it does not grow (sure). Otherwise, it grows (not sure)."""
        if phase == Phase.BACKWARD and size in self._parameter_bytes:
            return False, False
        return size >= self._samples, size < self._samples

    def _with_shape(self, shape: Shape, call: Call, phase: int) -> tuple[bool, bool]:
        parameter = shape in self._parameters
        if call.product is not None or _COPIES.match(call.name):  # only these operators may transpose a parameter
            parameter |= shape[::-1] in self._parameters
        batch = self._has_batch(shape)
        if phase == Phase.BACKWARD and call.product is not None and call.product[0] == shape:
            contracted = call.product[1] in self._batch_sizes
            return not (contracted and parameter), not (contracted and batch)
        if not parameter:
            return batch, True
        if phase == Phase.BACKWARD or _COPIES.match(call.name) or len(shape) == 1:
            return False, not batch
        return batch, not batch

    def _has_batch(self, shape: Shape) -> bool:
        """Returns True if one of the first dimensions of `shape` is the number of samples, or a product of this number
        and other dimensions."""
        return any(size in self._batch_sizes for size in shape[:_BATCH_DIMENSIONS])

    @cached_property
    def _batch_sizes(self) -> set[int]:
        """Sizes that a dimension with the samples can have: the number of samples, and products of this number and the
        neighbouring dimensions, as in flattened tensors."""
        found = {self._samples}
        trace = self._memory.trace
        for row in np.unique(trace.events.signature[trace.rows(Kind.CPU_OP)], return_index=True)[1].tolist():
            call = self._calls.of(int(trace.rows(Kind.CPU_OP)[row]))
            for shape in call.inputs:
                if len(shape) > 1 and shape[0] == self._samples:
                    found |= {math.prod(shape[:end]) for end in range(1, len(shape))}
                elif len(shape) > 2 and shape[1] == self._samples:
                    found.add(shape[0] * shape[1])
        return found - {1} if self._samples > 1 else found

    @cached_property
    def _parameters(self) -> set[Shape]:
        """Shapes of the parameters: the shapes of the inputs of all operators in the last recorded step of the
        optimizer."""
        trace = self._memory.trace
        events = trace.events
        steps = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
        steps = steps[name_matches(trace.names, events.name[steps], lambda name: bool(_STEP.match(name)))]
        found: set[Shape] = set()
        for step in steps[-1:].tolist():
            rows = trace.rows(Kind.CPU_OP)
            inside = (events.start[rows] > events.start[step]) & (events.end[rows] <= events.end[step])
            for row in rows[inside & (rows != step)].tolist():
                found.update(self._calls.of(row).inputs)
        return {shape for shape in found if shape}

    @cached_property
    def _parameter_bytes(self) -> set[int]:
        memory = self._memory
        chosen = memory.category == INDEX[Category.GRADIENTS]
        return set(distinct_values(memory.blocks.size[chosen]).tolist())


def _longest(calls: tuple[Call, ...]) -> int:
    """Returns the largest dimension of the inputs of `calls`; 2**62 if the calls have no inputs."""
    return max((max(shape) for call in calls for shape in call.inputs), default=1 << 62)


_FIXED = {INDEX[category] for category in _FIXED_CATEGORIES}
