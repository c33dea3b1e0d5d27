"""memory: kernels run that are limited by memory bandwidth.

Signal: device time of kernels that do few operations per byte, by shapes or names.
Formula: that time / the window; if shapes were recorded, a kernel counts here if its traffic takes longer at the
device's bandwidth than its arithmetic at the device's peak. Half of the time of pointwise kernels that compute one
operator each counts as recoverable: if two consecutive kernels are fused, they read and write half as much. The
optimizer's kernels are a separate cause. In networks of convolutions in 32 bits, half precision moves half of the
bytes; this is a cause if the convolutions themselves are not a cause (bottlenecks/compute/rule.py). Conversions between
the layouts NCHW and NHWC, with batch norm in NCHW, are a cause of their own, and so are updates of all rows of
embedding tables. Of the work between
the two matrix multiplications of attention, half counts as recoverable too. All causes together count for at most the
regime's share.
Threshold: fires at 50 % of the window.
Source: a device regime limits the run if it owns more than half of the window; knowledge/kernels.toml lists the kernels
that stream.
"""

from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import (
    full_precision_products,
    memory_reached,
    roofs_known,
    shapes_recorded,
    types_multiplied,
)
from tb_bottleneck.bottlenecks.compute.kernels import costliest_kernel
from tb_bottleneck.bottlenecks.compute.rule import MIN_PRODUCT_SHARE
from tb_bottleneck.bottlenecks.compute.wide_types import wide_activations
from tb_bottleneck.bottlenecks.launch.compilation import compiled_regions, eager_functions
from tb_bottleneck.bottlenecks.launch.compiled_steps import broken_graphs
from tb_bottleneck.bottlenecks.memory.attention import attention_passes, unfused_attention_share
from tb_bottleneck.bottlenecks.memory.embedding import dense_update_share, table_rows_used
from tb_bottleneck.bottlenecks.memory.fusion import (
    beside_optimizer,
    optimizer_launches,
    optimizer_pointwise,
    pointwise_kernels,
    pointwise_share,
)
from tb_bottleneck.bottlenecks.memory.layout import NORM_LEFT, layout_conversions, norms_in_nchw
from tb_bottleneck.bottlenecks.rule_types import CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.hardware_counters import bandwidth_in_use
from tb_bottleneck.measures.trace.process_facts import on_windows

FIRES_AT = 0.50
# A fifth of the window in unfused kernels is worth reporting: traceml's critical level for overheads.
MIN_POINTWISE_SHARE = 0.20
# One call replaces attention, so a tenth of the window is enough: traceml's warning level for overheads.
MIN_ATTENTION_SHARE = 0.10
RECOVERABLE_OF_POINTWISE = 0.5
# One call changes the layout of a model, so a tenth of the window is enough: traceml's warning level for overheads. A
# hundredth in conversions shows that the convolutions need the other layout; single layers may convert anyway.
MIN_LAYOUT_SHARE, MIN_CONVERSIONS = 0.10, 0.01
# One argument makes the gradients of a table sparse: traceml's warning level for overheads.
MIN_DENSE_SHARE = 0.10


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `memory` for a trace. Most causes are chains of pointwise kernels: fused into one
    kernel, they read and write memory only once."""
    share = measures.account.share(Regime.MEMORY)
    evidence = (costliest_kernel, memory_reached, roofs_known, shapes_recorded, bandwidth_in_use)
    causes = tuple(cause for cause in _causes(measures, share) if cause.cost_share >= MIN_POINTWISE_SHARE)
    causes += _attention(measures, share) + _wide(measures, share) + _layout(measures, share) + _dense(measures, share)
    status = FIRES if share >= FIRES_AT or causes else CLEAR
    return Judgement(
        status,
        share,
        RECOVERABLE_OF_POINTWISE * min(sum(cause.cost_share for cause in causes), share),
        causes,
        evidence,
    )


def _causes(measures: Measures[Recording], share: float) -> tuple[Cause[Recording], ...]:
    """Returns two causes: the pointwise work of the model, which torch.compile fuses, and that of the optimizer and of
    other passes over the parameters, without large embedding tables, which are a cause of their own. A fused
    optimizer has no pointwise work. `share` is the regime's share of the window; it limits the costs (0 or more)."""
    model = min(measures.value(pointwise_share, otherwise=0.0), share)
    all_passes, beside = (measures.value(each, otherwise=0.0) for each in (optimizer_pointwise, beside_optimizer))
    rest = all_passes - measures.value(dense_update_share, otherwise=0.0) if beside < all_passes else 0.0
    optimizer = max(min(rest, share - model), 0.0)
    evidence = (pointwise_share, pointwise_kernels, memory_reached)
    unfused = Cause("unfused_pointwise", model, (*evidence, eager_functions, broken_graphs, on_windows), bounded=False)
    in_use = isinstance(measures(compiled_regions), Measure) or isinstance(measures(eager_functions), Measure)
    if not measures.on_device and in_use:
        outside = (compiled_regions, eager_functions, broken_graphs, *evidence)
        unfused = Cause("pointwise_outside_graphs", model, outside, bounded=False)
    return (
        unfused,
        Cause(
            "optimizer_passes", optimizer, (optimizer_pointwise, beside_optimizer, optimizer_launches), bounded=False
        ),
    )


def _attention(measures: Measures[Recording], share: float) -> tuple[Cause[Recording], ...]:
    """Returns the cause `unfused_attention` if the program computes attention with separate operators instead of a
    fused one, and these operators take at least MIN_ATTENTION_SHARE of the window; otherwise (). `share` is the
    regime's share of the window."""
    attention = min(measures.value(unfused_attention_share, otherwise=0.0), share)
    if attention < MIN_ATTENTION_SHARE:
        return ()
    return (Cause("unfused_attention", attention, (attention_passes, unfused_attention_share), bounded=False),)


def _wide(measures: Measures[Recording], share: float) -> tuple[Cause[Recording], ...]:
    """Returns the cause `fp32_activations` if a convolution network moves its activations in 32 bits for at least
    MIN_POINTWISE_SHARE of the window, and its convolutions are not a cause themselves; otherwise (). `share` is the
    regime's share."""
    wide = min(measures.value(wide_activations, otherwise=0.0), share)
    if wide < MIN_POINTWISE_SHARE or measures.value(full_precision_products, otherwise=0.0) >= MIN_PRODUCT_SHARE:
        return ()
    return (Cause("fp32_activations", wide, (wide_activations, types_multiplied), bounded=False),)


def _dense(measures: Measures[Recording], share: float) -> tuple[Cause[Recording], ...]:
    """Returns the cause `dense_gradients` if updates of all rows of embedding tables, of which a batch uses few, take
    at least MIN_DENSE_SHARE of the window; otherwise (). `share` is the regime's share of the window."""
    dense = min(measures.value(dense_update_share, otherwise=0.0), share)
    if dense < MIN_DENSE_SHARE:
        return ()
    return (Cause("dense_gradients", dense, (dense_update_share, table_rows_used), bounded=False),)


def _layout(measures: Measures[Recording], share: float) -> tuple[Cause[Recording], ...]:
    """Returns the cause `memory_format` if convolutions on matrix units work on tensors in NCHW, and the conversions of
    the layout with the part of batch norm that channels_last saves take at least MIN_LAYOUT_SHARE of the window;
    otherwise (). Without conversions, NCHW costs nothing: products in 32 bits without matrix units need none."""
    conversions = measures.value(layout_conversions, otherwise=0.0)
    norms = measures.value(norms_in_nchw, otherwise=0.0)
    cost = min(conversions + (1 - NORM_LEFT) * norms, share)
    if conversions < MIN_CONVERSIONS or cost < MIN_LAYOUT_SHARE:
        return ()
    return (Cause("memory_format", cost, (layout_conversions, norms_in_nchw, types_multiplied), bounded=False),)


RULE = Rule(Regime.MEMORY, judge, FIRES_AT)
