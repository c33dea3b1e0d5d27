"""Determines whether two recordings do the same work, by the operators that they run per step and the model's weights.

The names of operators are compared first. Names can change although the work does not: a loop becomes one batched call,
compiled code and CUDA graphs hide operators, another precision adds casts. Therefore, if the names disagree, the shapes
of the weights in matrix multiplications and convolutions decide, because these shapes depend only on the model.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import EMPTY, Spans, union
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.measures.batch_size import passes_of
from tb_bottleneck.measures.efficiency.contractions import contractions
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Rows

# Smallest share of common work at which two recordings count as the same work. In public recordings, other loaders,
# batch sizes and torch versions of one model give 0.83 to 0.98, and other models 0.43 at most.
SAME_WORK_FROM = 0.7
# If weights are compared, a share below this value means different work. Between this value and SAME_WORK_FROM, the
# weights do not decide: the recordings may have only a part of the model in common, or a recording may lack products of
# the backward pass.
OTHER_WORK_BELOW = 0.3
# Products and convolutions, and the input that contains the weights: their shapes depend on the model only.
_PRODUCTS = {"aten::mm": 1, "aten::addmm": 2, "aten::convolution": 1}
_BACKWARD = "autograd::engine::evaluate_function"
_ON_CPU = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::mkldnn_convolution",
)
# Smallest share of common products (matrix multiplications, convolutions, attention) at which the names of all
# operators can show the same work. The same model has equally many products, but different models may share many
# operators: two networks of 52 and 36 convolutions share 73 % of them.
SAME_PRODUCTS_FROM = 0.9
_COUNTED_PRODUCTS = (*_ON_CPU[:4], "aten::scaled_dot_product_attention")
# If the total floating-point operations of the products of two runs differ by at most this share, the products are the
# same work in other portions, provided that at least a third of the products of either run have weights that also occur
# in the other run. A third, because a linear layer multiplies by its weights in the forward pass and for one of two
# gradients.
SAME_FLOPS_WITHIN = 0.02
MIN_COMMON_WEIGHTS = 1 / 3
# Smallest number of products per step by which a model can be recognised.
MIN_PRODUCTS = 10
# Smallest number of different weight shapes if operators are hidden, because a single common shape may be a
# coincidence.
MIN_HIDDEN_WEIGHTS = 2
WEIGHTS, OPERATORS, PRODUCTS = "weights", "operators", "products"
UNKNOWN_SIMILARITY = (
    "Cannot determine whether both runs do the same work: compiled code, a CUDA graph or another kind of device hides "
    "the operators (record_shapes=True in both recordings helps)."
)


Calls = dict[str, float]
"""Maps names of operators, or sizes of weights, to the number of calls per step."""


@dataclass(frozen=True)
class Similarity:
    """The similarity of the work in two recordings. `share` is the share (0 to 1) of the work that they have in common.

    `basis` is what was compared: "operators" by name, "weights" by shape, or "products" (matrix multiplications,
    convolutions and attention) by name.
    """

    share: float
    basis: str

    @property
    def least(self) -> float:
        """The smallest `share` at which both recordings are taken to do the same work."""
        return SAME_PRODUCTS_FROM if self.basis == PRODUCTS else SAME_WORK_FROM

    @property
    def same_work(self) -> bool:
        """True if both recordings are taken to do the same work."""
        return self.share >= self.least


def similarity(a: Recording, b: Recording) -> Similarity | Missing:
    """Returns the share of the work per step that `a` and `b` have in common, or Missing if it cannot be determined.

    Operators that launch device work count, except those of the optimizer if both runs mark them, because the
    implementation of the optimizer is not part of the work. On CPUs, matrix multiplications and convolutions count. The
    share is relative to the operators that at least one run has.

    If the operators or matrix multiplications disagree, or only one run has a device, the shapes of weights decide. If
    compiled code or graphs hide matrix multiplications of a run, the share is relative to the visible ones of this run.
    If the weights do not decide clearly, returns Missing or the share by names. If one run accumulates gradients over
    more passes than the other, the work is also counted per pass, and the larger share is returned.
    """
    if not a.on_device and not b.on_device:
        return Similarity(_best(a, b, (_counted(a, _rows(a, _ON_CPU)), _counted(b, _rows(b, _ON_CPU)))), OPERATORS)
    if not (a.on_device and b.on_device):
        return _by_weights(a, b)
    updates = [run.optimizer_time for run in (a, b)]
    excluded = updates if all(len(spans) for spans in updates) else [EMPTY, EMPTY]
    share = _best(a, b, (_launching(a, excluded[0]), _launching(b, excluded[1])))
    operators = Similarity(share, OPERATORS)
    products = _common_products(a, b)
    if operators.same_work and products >= SAME_PRODUCTS_FROM:
        return operators
    weights = _by_weights(a, b)
    if operators.same_work and isinstance(weights, Missing):
        return Similarity(products, PRODUCTS)
    if not isinstance(weights, Missing):
        return weights
    return weights if _fused(a) or _fused(b) or _same_products_without_shapes(a, b) else operators


def _by_weights(a: Recording, b: Recording) -> Similarity | Missing:
    """Returns the similarity of the shapes of weights in matrix multiplications and convolutions. Returns Missing if
    too few shapes are known, or if the share is between OTHER_WORK_BELOW and SAME_WORK_FROM."""
    weights, hidden = (_weights(a), _weights(b)), (_fused(a), _fused(b))
    if min(map(len, weights)) < (MIN_HIDDEN_WEIGHTS if any(hidden) else 1):
        return Missing(UNKNOWN_SIMILARITY)
    share = max(_best(a, b, weights, hidden), _same_flops(a, b, weights))
    if share >= SAME_WORK_FROM or share < OTHER_WORK_BELOW:
        return Similarity(share, WEIGHTS)
    return Missing(UNKNOWN_SIMILARITY)


def _common_products(a: Recording, b: Recording) -> float:
    """Returns the share (0 to 1) of matrix multiplications, convolutions and attention, by name, that both runs have in
    common. Returns 1 if compiled code or graphs may hide them, or if a run has fewer than MIN_PRODUCTS per step."""
    calls = _counted(a, _rows(a, _COUNTED_PRODUCTS)), _counted(b, _rows(b, _COUNTED_PRODUCTS))
    if _fused(a) or _fused(b) or min(sum(each.values()) for each in calls) < MIN_PRODUCTS:
        return 1.0
    return _best(a, b, calls)


def _same_flops(a: Recording, b: Recording, weights: tuple[Calls, Calls]) -> float:
    """Returns the ratio (smaller / larger) of the floating-point operations per step of the two runs, if it is at least
    1 - SAME_FLOPS_WITHIN and at least MIN_COMMON_WEIGHTS of either run's `weights` occur in the other; otherwise 0.

    In this way, runs are recognised in which matrix multiplications are divided into portions: they are called more
    often, with fewer rows per call.
    """
    work = [float(contractions(run).flops.sum()) / len(run.steps) for run in (a, b)]
    if min(work) <= 0 or min(work) < (1 - SAME_FLOPS_WITHIN) * max(work):
        return 0.0
    common = weights[0].keys() & weights[1].keys()
    shares = [sum(each[size] for size in common) / sum(each.values()) for each in weights]
    return min(work) / max(work) if min(shares) >= MIN_COMMON_WEIGHTS else 0.0


def _same_products_without_shapes(a: Recording, b: Recording) -> bool:
    """Returns True if a run recorded no shapes, and both runs call the same matrix multiplications equally often.

    Different models may do that, too. Therefore, True does not prove that the work is the same, only that it may be.
    """
    if _weights(a) and _weights(b):
        return False
    products = _counted(a, _rows(a, tuple(_PRODUCTS))), _counted(b, _rows(b, tuple(_PRODUCTS)))
    enough = min(sum(calls.values()) for calls in products) >= MIN_PRODUCTS
    return enough and _best(a, b, products) >= SAME_WORK_FROM


def _best(a: Recording, b: Recording, calls: tuple[Calls, Calls], hidden: tuple[bool, bool] = (False, False)) -> float:
    """Returns the share (0 to 1) of `calls` that both runs have in common, per step, or per pass of gradient
    accumulation if that is larger.

    `calls` has the calls per step of A and B. `hidden` is True for a run in which compiled code or graphs hide calls.
    """
    passes = passes_of(a), passes_of(b)
    share = _common_share(*calls, hidden)
    if passes[0] == passes[1]:
        return share
    per_pass = [{name: n / size for name, n in each.items()} for each, size in zip(calls, passes, strict=True)]
    return max(share, _common_share(per_pass[0], per_pass[1], hidden))


def _common_share(a: Calls, b: Calls, hidden: tuple[bool, bool]) -> float:
    """Returns (common calls / calls that at least one run has) for the calls `a` and `b` by name.

    If one run hides some of its calls, the divisor is the number of its visible calls; if both do, the smaller of these
    numbers. Returns 1 if the divisor is 0.
    """
    both = sum(min(calls, b.get(name, 0.0)) for name, calls in a.items())
    sums = sum(a.values()), sum(b.values())
    visible = [calls for calls, hides in zip(sums, hidden, strict=True) if hides]
    total = min(visible, default=sum(sums) - both)
    return both / total if total else 1.0


def _launching(recording: Recording, without: Spans) -> Calls:
    """Returns the calls per step of operators that launch device work, by name, except those in the spans `without`."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.device_ops
    inside = ops.launched & recording.in_window(ops.start)
    calls = np.unique(ops.call[inside])
    rows = operator[calls[called[calls]]] if len(trace.calls) else calls
    return _counted(recording, rows[~without.contains(trace.events.start[rows])])


def _weights(recording: Recording) -> Calls:
    """Returns the calls per step of matrix multiplications and convolutions by the sizes of their weights.

    A key is the sorted sizes of a weight as text. Empty if no shapes were recorded. Backward passes are left out,
    because the sizes in them can depend on the batch.
    """
    trace, rows = recording.trace, _rows(recording, tuple(_PRODUCTS))
    forward = rows[~_backward_spans(recording).contains(trace.events.start[rows])]
    rows = forward if len(forward) else rows
    kinds, counts = np.unique(
        np.stack([trace.events.name[rows], trace.events.signature[rows]], axis=1), axis=0, return_counts=True
    )
    calls: Calls = {}
    for (name, signature), count in zip(kinds.tolist(), counts.tolist(), strict=True):
        operands, which = operands_of(trace.signatures[signature]), _PRODUCTS[trace.names[name]]
        if operands is not None and which < len(operands.dims):
            sizes = str(sorted(size for size in operands.dims[which] if isinstance(size, int)))
            calls[sizes] = calls.get(sizes, 0.0) + count / len(recording.steps)
    return calls


def _backward_spans(recording: Recording) -> Spans:
    """Returns the time spans (ns) in which backward passes ran."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith(_BACKWARD))]
    return union(trace.events.start[rows], trace.events.end[rows])


def _rows(recording: Recording, names: tuple[str, ...]) -> Rows:
    """Returns the operators with one of `names` in the window, as rows of the events."""
    trace = recording.trace
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[recording.in_window(trace.events.start[rows])]
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: name in names)]


def _counted(recording: Recording, rows: Rows) -> Calls:
    """Returns the number of calls per step by the name of the operator. `rows` are the calls, as rows of the events."""
    names, counts = np.unique(recording.trace.events.name[rows], return_counts=True)
    pairs = zip(names.tolist(), counts.tolist(), strict=True)
    return {recording.trace.names[name]: count / len(recording.steps) for name, count in pairs}


def _fused(recording: Recording) -> bool:
    """Returns True if the recording has compiled code or CUDA graphs, which hide the operators that they replace."""
    trace = recording.trace
    if any(name.startswith(("Torch-Compiled Region", "triton_")) for name in trace.names):
        return True
    launches = trace.calls.of(Role.LAUNCH)
    return bool(name_matches(trace.names, launches.name, lambda name: "GraphLaunch" in name).any())
