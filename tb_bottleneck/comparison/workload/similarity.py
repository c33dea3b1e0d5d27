"""Determines whether two recordings do the same work, by the similarity of the operators that they run per step."""

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

# Below this similarity, two recordings are hardly of the same training. On public recordings, other loaders, batch
# sizes and torch versions of one model give 0.83 to 0.98, and other models 0.43 at most.
SAME_WORK_FROM = 0.7
# The same, if only products are compared: another batch size changes the shapes of at most a third of the products.
OTHER_WORK_BELOW = 0.3
# Products and convolutions, and the input that contains the weights: their shapes depend on the model only.
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
    "Cannot determine whether both runs do the same work: compiled code, a CUDA graph or another kind of device hides "
    "the operators (record_shapes=True in both recordings helps)."
)


def similarity(a: Recording, b: Recording) -> float | Missing:
    """Returns the share of operators per step that both runs have, of those that either has: 0 to 1.

    The operators that launch device work count, except the optimizer's if both runs mark those: its implementation is
    not part of the work. On CPUs, products and convolutions count. If compiled code or graphs launch the kernels of one
    run, or if only one has a device, the shapes of weights decide; Missing if they do not decide clearly. If one run
    accumulates gradients over more passes than the other, operators are also counted per pass, and the larger value is
    returned.
    """
    if not a.on_device and not b.on_device:
        return _best(a, b, *(_counted(run, _rows(run, _ON_CPU)) for run in (a, b)))
    if not (a.on_device and b.on_device):
        return _by_products(a, b)
    updates = [optimizer_spans(run) for run in (a, b)]
    excluded = updates if all(len(spans) for spans in updates) else [EMPTY, EMPTY]
    share = _best(a, b, *(_launching(run, spans) for run, spans in zip((a, b), excluded, strict=True)))
    return _by_products(a, b) if share < SAME_WORK_FROM and _fused(a) != _fused(b) else share


def _by_products(a: Recording, b: Recording) -> float | Missing:
    """Returns the similarity of the weights in products and convolutions."""
    weights = _weights(a), _weights(b)
    if not weights[0] or not weights[1]:
        return Missing(UNKNOWN_SIMILARITY)
    share = _best(a, b, *weights)
    return share if share >= SAME_WORK_FROM or share < OTHER_WORK_BELOW else Missing(UNKNOWN_SIMILARITY)


def _best(a: Recording, b: Recording, *counts: dict[str, float]) -> float:
    """Returns the similarity per step, or per pass if that is larger."""
    passes = passes_of(a), passes_of(b)
    if passes[0] == passes[1]:
        return _common_share(*counts)
    per_pass = [{name: n / size for name, n in calls.items()} for calls, size in zip(counts, passes, strict=True)]
    return max(_common_share(*counts), _common_share(*per_pass))


def _common_share(*counts: dict[str, float]) -> float:
    names = counts[0].keys() | counts[1].keys()
    either = sum(max(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names)
    both = sum(min(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names)
    return both / either if either else 1.0


def _launching(recording: Recording, without: Spans) -> dict[str, float]:
    """Returns the calls per step of operators that launch device work, by name, except those in the spans `without`."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.device_ops
    inside = ops.launched & recording.in_window(ops.start)
    calls = np.unique(ops.call[inside])
    rows = operator[calls[called[calls]]] if len(trace.calls) else calls
    return _counted(recording, rows[~without.contains(trace.events.start[rows])])


def _weights(recording: Recording) -> dict[str, float]:
    """Returns the calls per step of products and convolutions, by the sizes of their weights; empty without shapes."""
    trace, rows = recording.trace, _rows(recording, tuple(_PRODUCTS))
    kinds, counts = np.unique(
        np.stack([trace.events.name[rows], trace.events.signature[rows]], axis=1), axis=0, return_counts=True
    )
    calls: dict[str, float] = {}
    for (name, signature), count in zip(kinds.tolist(), counts.tolist(), strict=True):
        operands, which = operands_of(trace.signatures[signature]), _PRODUCTS[trace.names[name]]
        if operands is not None and which < len(operands.dims):
            sizes = str(sorted(size for size in operands.dims[which] if isinstance(size, int)))
            calls[sizes] = calls.get(sizes, 0.0) + count / len(recording.steps)
    return calls


def _rows(recording: Recording, names: tuple[str, ...]) -> Rows:
    """Returns the operators of these names in the window."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[recording.in_window(trace.events.start[rows])]
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in names)]


def _counted(recording: Recording, rows: Rows) -> dict[str, float]:
    names, counts = np.unique(recording.trace.events.name[rows], return_counts=True)
    pairs = zip(names.tolist(), counts.tolist(), strict=True)
    return {recording.trace.names[name]: count / len(recording.steps) for name, count in pairs}


def _fused(recording: Recording) -> bool:
    """Returns True if compiled code or graphs launch kernels of the recording."""
    trace = recording.trace
    if any(name.startswith(("Torch-Compiled Region", "triton_")) for name in trace.names):
        return True
    launches = trace.calls.of(Role.LAUNCH)
    return bool(name_matches(trace.names, launches.name, lambda name: "GraphLaunch" in name).any())
