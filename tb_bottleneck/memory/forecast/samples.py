"""The samples of a forward pass, from the shapes of the first layer."""

from tb_bottleneck.memory.phases import Phase
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.operands import operands_of

# Operators that models begin with, and their input that has the samples in its first dimension.
_FIRST_LAYERS = {
    "aten::conv1d": 0, "aten::conv2d": 0, "aten::conv3d": 0, "aten::embedding": 1, "aten::linear": 0,
}  # fmt: skip
_MAX_TRIED = 8


def samples_of(memory: TraceMemory) -> int | None:
    """Returns the samples of a forward pass, or None if no shape of a first layer was recorded."""
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
