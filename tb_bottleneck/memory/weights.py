"""Sizes of the weights that layers read, and of the state that the optimizer keeps.

The size of the weights comes from the recorded shapes of operators' inputs. The size of the state per parameter comes
from the recorded class of the optimizer. Each module of a model is assumed to have its own weights.
"""

import math
import re

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.memory.sites import MODULE
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# Operators of layers, and the indices of the inputs that are weights (torch/nn/functional.py).
_WEIGHTS = {
    "aten::linear": (1, 2), "aten::conv1d": (1, 2), "aten::conv2d": (1, 2), "aten::conv3d": (1, 2),
    "aten::embedding": (0,), "aten::layer_norm": (2, 3), "aten::group_norm": (2, 3), "aten::batch_norm": (1, 2, 3, 4),
}  # fmt: skip
_ITEM_SIZE = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "signed char": 1, "unsigned char": 1}


def weights_read(trace: Trace) -> int:
    """Returns the bytes of the weights of all modules that ran; 0 if modules or shapes were not recorded.

    A module that runs several times is counted once. Weights that several modules share are counted once per module."""
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], _WEIGHTS.__contains__)]
    module = _modules_around(trace, rows)
    rows, module = rows[module >= 0], module[module >= 0]
    first, _ = distinct_rows(module, trace.events.name[rows])
    return sum(_size(trace, int(row)) for row in rows[first])


def _modules_around(trace: Trace, rows: Rows) -> Ints:
    """Returns for each event row in `rows` the index in the trace's names of the name of the innermost nn.Module around
    the event; -1 if no module encloses the event."""
    found = np.full(len(rows), -1, np.int64)
    modules = trace.rows(Kind.PYTHON)
    modules = modules[name_matches(trace.names, trace.events.name[modules], lambda name: name.startswith(MODULE))]
    own = by_thread(np.arange(len(rows)), trace.events.thread[rows])
    for thread, around in by_thread(modules, trace.events.thread).items():
        mine = own.get(thread, np.empty(0, np.intp))
        times = trace.events.start[rows[mine]]
        inside, row = innermost(trace.events.start[around], trace.events.end[around], times)
        found[mine[inside]] = trace.events.name[around[row[inside]]]
    return found


def _size(trace: Trace, row: int) -> int:
    operands = operands_of(trace.signatures[trace.events.signature[row]])
    if operands is None:
        return 0
    total = 0
    for index in _WEIGHTS[trace.names[trace.events.name[row]]]:
        shape = operands.dims[index] if index < len(operands.dims) else ()
        kind = operands.types[index] if index < len(operands.types) else ""
        if shape and all(isinstance(size, int) for size in shape):
            total += math.prod(shape) * _ITEM_SIZE.get(kind, 0)
    return total


_STEP = re.compile(r"^Optimizer\.step#(\w+)\.step")


def state_per_parameter(trace: Trace) -> float | None:
    """Returns how many bytes of state the recorded optimizer keeps per byte of parameters; None if unknown.

    Some classes keep more state with certain options. A certain operator in the optimizer's step then shows that such
    an option is used."""
    name = optimizer_name(trace)
    entry = next((entry for entry in load("optimizers.toml")["optimizer"] if entry["name"] == name), None)
    if entry is None:
        return None
    extra = 0.0
    if "more_if_operator" in entry and _runs_in_step(trace, re.compile(entry["more_if_operator"])):
        extra = float(entry["more"])
    return float(entry["state"]) + extra


def state_of(name: str) -> float | None:
    """Returns how many bytes of state the optimizer class `name` usually keeps per byte of parameters; None if the
    class is unknown. Upper and lower case in `name` do not matter."""
    for entry in load("optimizers.toml")["optimizer"]:
        if entry["name"].lower() == name.lower():
            return float(entry.get("usual", entry["state"]))
    return None


def optimizer_name(trace: Trace) -> str | None:
    """Returns the class of the recorded optimizer, or None if there is none or there are several."""
    found = {match[1] for name in trace.names if (match := _STEP.match(name))}
    return found.pop() if len(found) == 1 else None


def _runs_in_step(trace: Trace, pattern: re.Pattern[str]) -> bool:
    events = trace.events
    steps = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    steps = steps[name_matches(trace.names, events.name[steps], lambda name: bool(_STEP.match(name)))]
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, events.name[rows], lambda name: bool(pattern.search(name)))]
    return any(
        bool(((events.start[rows] >= events.start[step]) & (events.end[rows] <= events.end[step])).any())
        for step in steps[:8].tolist()
    )
