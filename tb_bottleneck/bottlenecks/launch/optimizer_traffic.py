"""The memory traffic of an optimizer, compared with that of a fused implementation."""

from collections import Counter
from math import prod

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import OPTIMIZER_STEP
from tb_bottleneck.base.measure import Record
from tb_bottleneck.bottlenecks.memory.fusion import FOREACH, FUSED, MANY_PARAMETERS, pointwise_operators
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Rows

STATES = {"SGD": 0, "Adam": 2, "AdamW": 2, "Adagrad": 1}
"""Tensors of state per parameter of the optimizers with a fused implementation (pytorch docs, torch.optim). Operators
show the momentum of SGD and the maximum of amsgrad."""
ACCESSES = {
    "addcdiv_": 4,
    **dict.fromkeys(("add", "addcmul_", "lerp_", "maximum_"), 3),
    **dict.fromkeys(("mul_", "div_", "sqrt", "neg", "reciprocal_"), 2),
}
"""Tensors that a foreach operator reads and writes per parameter. `add_` adds a number in Adam, and a list in SGD."""


class Traffic(Record, frozen=True):
    """The memory traffic of an optimizer that is not fused. `left` is (traffic of a fused optimizer / recorded
    traffic), at most 1; `elements` is the mean number of elements of a parameter tensor, 0 if not known."""

    left: float
    elements: float


@memoized
def optimizer_traffic(recording: Recording) -> Traffic | None:
    """Compares the memory traffic of an optimizer that is not fused with that of a fused implementation. Returns the
    ratio fused / recorded, and the mean size of the updated tensors (see Traffic).

    Returns None if the optimizer has no fused implementation or is fused, if there are several kinds of optimizers, or
    if no shapes were recorded of an optimizer that loops over its parameters.

    The recorded traffic is the elements of all tensors that each operator reads, and of the one tensor that it writes.
    The fused traffic per element of a parameter is 3 (the parameter and its gradient are read, the parameter is
    written) plus 2 for each tensor of state (read and written). The updated parameters are counted by the operator that
    updates them: `addcdiv_`, or `add_` for SGD. All tensors are assumed to have one type.
    """
    trace, events = recording.trace, recording.trace.events
    optimizers = {
        trace.names[name].removeprefix(OPTIMIZER_STEP).partition(".")[0]
        for name in np.unique(events.name[trace.rows(Kind.ANNOTATION, Kind.CPU_OP)]).tolist()
        if trace.names[name].startswith(OPTIMIZER_STEP)
    }
    if len(optimizers) != 1 or not optimizers <= STATES.keys():
        return None
    if recording.on_device and (called := _foreach_calls(recording)):
        return _of_foreach(called, *optimizers)
    rows = _rows(recording)
    kinds, calls = np.unique(np.stack((events.name[rows], events.signature[rows])), axis=1, return_counts=True)
    elements: Counter[str] = Counter()
    updates: Counter[str] = Counter()
    recorded = 0
    for (name, signature), count in zip(kinds.T.tolist(), calls.tolist(), strict=True):
        operands = operands_of(trace.signatures[signature])
        if operands is None:
            return None
        sizes = [prod(dim) for dim in operands.dims if dim and all(isinstance(size, int) for size in dim)]
        operator = trace.names[name].removeprefix("aten::")
        recorded += count * (sum(sizes) + max(sizes, default=0))
        elements[operator] += count * max(sizes, default=0)
        updates[operator] += count * bool(sizes)
    if optimizers == {"SGD"}:  # with momentum, a parameter is multiplied once and added to twice
        updated, state = elements["add_"] - elements["mul_"], elements["mul_"]
        number = updates["add_"] - updates["mul_"]
    else:
        updated, number = elements["addcdiv_"], updates["addcdiv_"]
        state = STATES[optimizers.pop()] * updated + elements["maximum"]
    if updated <= 0 or number <= 0:
        return None
    return Traffic(min((3 * updated + 2 * state) / recorded, 1.0), updated / number)


def _foreach_calls(recording: Recording) -> Counter[str]:
    """Returns the number of calls of each foreach operator that launches kernels inside Optimizer.step, by its name
    without prefix; empty if a fused operator launches kernels there."""
    trace, events = recording.trace, recording.trace.events
    called, operator = trace.calling_operators
    inside = called & recording.optimizer_steps.contains(trace.calls.start[:]) & (trace.calls.role == Role.LAUNCH)
    rows = np.unique(operator[inside])
    names = [trace.names[name] for name in events.name[rows].tolist()]
    if any(name.startswith(FUSED) for name in names):
        return Counter()
    return Counter(name.removeprefix(FOREACH) for name in names if name.startswith(FOREACH))


def _of_foreach(called: Counter[str], optimizer: str) -> Traffic | None:
    """Returns the traffic of an optimizer with foreach operators, from the number of their calls (see ACCESSES)."""
    if optimizer == "SGD":
        updates, state = called["add_"] - called["mul_"], called["mul_"]
    else:
        updates = called["addcdiv_"]
        state = STATES[optimizer] * updates + called["maximum_"]
    of_add = 3 if optimizer == "SGD" else 2
    recorded = sum(number * ACCESSES.get(name, of_add) for name, number in called.items())
    return Traffic(min((3 * updates + 2 * state) / recorded, 1.0), 0.0) if updates > 0 else None


def _rows(recording: Recording) -> Rows:
    """Returns the events of the outermost pointwise operators inside Optimizer.step, as rows of `trace.events`; none if
    the optimizer already updates some parameters together."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[recording.optimizer_steps.contains(events.start[rows])]
    if name_matches(trace.names, events.name[rows], lambda name: name.startswith(MANY_PARAMETERS)).any():
        return rows[:0]
    rows, _ = pointwise_operators(recording, recording.optimizer_steps)
    rows = rows[np.lexsort((-events.end[rows], events.start[rows]))]
    reach = np.maximum.accumulate(events.end[rows])
    top: Rows = rows[np.append(True, events.start[rows][1:] >= reach[:-1])[: len(rows)]]
    return top
