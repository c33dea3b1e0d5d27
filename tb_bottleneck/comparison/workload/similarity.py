"""Whether two recordings do the same work: how alike the operators are that they run per step."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.workload.batch_size import passes_of
from tb_bottleneck.comparison.workload.operator_time import optimizer_spans
from tb_bottleneck.intervals import EMPTY, Spans
from tb_bottleneck.measure import Missing
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Rows

# Below this the two are hardly one training. On public recordings, other loaders, batches and torch versions of one
# model leave 0.83 to 0.98, and other models 0.43 at most.
SAME_WORK_FROM = 0.7
# Told by products alone, the two are hardly one training below this: another batch changes the shapes of a third of a
# training's products, and no more.
OTHER_WORK_BELOW = 0.3
# What multiplies and convolves, and which of its inputs are the weights: the shapes of those are the model's.
_PRODUCTS = {"aten::mm": 1, "aten::addmm": 2, "aten::convolution": 1}
_ON_CPU = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::mkldnn_convolution",
)
UNKNOWN_SIMILARITY = (
    "Whether both do the same work cannot be told: compiled code, a CUDA graph or another kind of device hides the "
    "operators that would tell it (record_shapes=True on both sides helps)."
)


def similarity(a: Recording, b: Recording) -> float | Missing:
    """Operators per step that both run, as a share of those that either runs: 0 to 1.

    Counted are operators that launch work on the device, without the optimizer's own where both sides mark those: how
    it is written is no part of the work. On CPUs it is what multiplies and convolves. Where compiled code or graphs
    launch the kernels of one side, or only one side has a device, the shapes of weights tell; Missing where they do not
    tell clearly. Where one side adds up gradients over more passes than the other, operators are counted per pass as
    well, and the better one holds.
    """
    if not a.on_device and not b.on_device:
        return _best(a, b, *(_counted(run, _rows(run, _ON_CPU)) for run in (a, b)))
    if not (a.on_device and b.on_device):
        return _by_products(a, b)
    updates = [optimizer_spans(run) for run in (a, b)]
    left_out = updates if all(len(one) for one in updates) else [EMPTY, EMPTY]
    alike = _best(a, b, *(_launching(run, without) for run, without in zip((a, b), left_out, strict=True)))
    return _by_products(a, b) if alike < SAME_WORK_FROM and _fused(a) != _fused(b) else alike


def _by_products(a: Recording, b: Recording) -> float | Missing:
    """How alike the weights are that both multiply and convolve with."""
    weights = _weights(a), _weights(b)
    if not weights[0] or not weights[1]:
        return Missing(UNKNOWN_SIMILARITY)
    alike = _best(a, b, *weights)
    return alike if alike >= SAME_WORK_FROM or alike < OTHER_WORK_BELOW else Missing(UNKNOWN_SIMILARITY)


def _best(a: Recording, b: Recording, *counts: dict[str, float]) -> float:
    """How alike they are per step, or per pass where that is better."""
    passes = passes_of(a), passes_of(b)
    if passes[0] == passes[1]:
        return _agreeing(*counts)
    each = [{name: n / size for name, n in one.items()} for one, size in zip(counts, passes, strict=True)]
    return max(_agreeing(*counts), _agreeing(*each))


def _agreeing(*counts: dict[str, float]) -> float:
    names = counts[0].keys() | counts[1].keys()
    either = sum(max(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names)
    both = sum(min(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names)
    return both / either if either else 1.0


def _launching(recording: Recording, without: Spans) -> dict[str, float]:
    """Calls per step of the operators that launch work on the device, by name, but for those in these spans."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.device_ops
    inside = ops.launched & recording.in_window(ops.start)
    calls = np.unique(ops.call[inside])
    rows = operator[calls[called[calls]]] if len(trace.calls) else calls
    return _counted(recording, rows[~without.contains(trace.events.start[rows])])


def _weights(recording: Recording) -> dict[str, float]:
    """Calls per step of what multiplies and convolves, by the sizes of its weights; without shapes nothing is known."""
    trace, rows = recording.trace, _rows(recording, tuple(_PRODUCTS))
    kinds, counts = np.unique(
        np.stack([trace.events.name[rows], trace.events.signature[rows]], axis=1), axis=0, return_counts=True
    )
    found: dict[str, float] = {}
    for (name, signature), count in zip(kinds.tolist(), counts.tolist(), strict=True):
        operands, which = operands_of(trace.signatures[signature]), _PRODUCTS[trace.names[name]]
        if operands is not None and which < len(operands.dims):
            sizes = str(sorted(size for size in operands.dims[which] if isinstance(size, int)))
            found[sizes] = found.get(sizes, 0.0) + count / len(recording.steps)
    return found


def _rows(recording: Recording, names: tuple[str, ...]) -> Rows:
    """The operators of these names in the window."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[recording.in_window(trace.events.start[rows])]
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in names)]


def _counted(recording: Recording, rows: Rows) -> dict[str, float]:
    names, counts = np.unique(recording.trace.events.name[rows], return_counts=True)
    found = zip(names.tolist(), counts.tolist(), strict=True)
    return {recording.trace.names[name]: count / len(recording.steps) for name, count in found}


def _fused(recording: Recording) -> bool:
    """Whether compiled code or graphs launch kernels of it."""
    trace = recording.trace
    if any(name.startswith(("Torch-Compiled Region", "triton_")) for name in trace.names):
        return True
    launches = trace.calls.of(Role.LAUNCH)
    return bool(name_matches(trace.names, launches.name, lambda name: "GraphLaunch" in name).any())
