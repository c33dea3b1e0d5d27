"""Changes the type of products."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import DeviceModel, device_of, unknown_device_reason
from tb_bottleneck.comparison.devices.kernel_scaling import DevicePair, operand_type, rows_by_name, times_at_roofs
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.knowledge.precisions import Precision, precision_of
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.kernel_efficiency import types_multiplied
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.roofline.operand_precision import with_operand_type
from tb_bottleneck.roofline.underfilled import TOO_SHORT_NS
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Bools, Floats
from tb_bottleneck.units import share_text

PRECISIONS = ("bf16", "fp16", "tf32")
WIDE_TYPES = ("fp32", "tf32", "fp64")
# Operands of this type are multiplied as fp32 or as TF32; only the kernel's name shows which.
FLOAT_OPERAND = "float"
# Autocast moves part of the other operations with half of the bytes; norms, softmax and losses stay the same.
AUTOCAST_BYTES = {Estimate.EXPECTED: 0.75, Estimate.LOW: 1.0, Estimate.HIGH: 0.5}
MIN_UNKNOWN_SHARE = 0.05  # of the device's work that keeps its type because it is unknown
# Casting needs some kernels of its own: 3 to 5 % of the time of products.
CAST_OVERHEAD = {Estimate.EXPECTED: 1.04, Estimate.LOW: 1.05, Estimate.HIGH: 1.03}


def change_precision(recording: Recording, dtype: str, devices: DevicePair | None = None) -> Change:
    """Returns the change of products and convolutions in wider types to this type, on matrix units.

    With `devices`, the run also moves to another device: its units are used, and its roofs limit the kernels.

    Raises:
        CannotPredict: the device is not known or has no units for this type, or no product runs in a wider one.
    """
    device = devices.b if devices is not None else device_of(recording.trace)
    if device is None:
        raise CannotPredict(unknown_device_reason(recording.trace))
    target = device.tensor.get(dtype)
    if target is None:
        raise CannotPredict(f"{device.name} has no matrix units for {dtype}.")
    rates = _rates(recording, device, dtype)
    if not (rates > 0).any():
        types = types_multiplied(recording)
        now = "" if isinstance(types, Missing) else f" They run in {types.text}."
        raise CannotPredict(f"No product of this recording is known to run in a type slower than {dtype}.{now}")
    half = dtype != "tf32"
    ratio = np.divide(target * (device.achievable or 1.0), rates, out=np.zeros(len(rates)), where=rates > 0)

    def factors(estimate: Estimate) -> Floats:
        return _factors(recording, ratio, devices, half, estimate)

    assumptions: tuple[str, ...] = (
        _affected(recording, rates > 0, dtype),
        *_unknown_types(recording, rates),
        "products gain the ratio of the units' rates if their roof is known from shapes, otherwise its square root",
    )
    if half:
        assumptions += ("training converges in this type; norms, softmax and losses stay in fp32, as with autocast",)
    return Change(f"products ran in {dtype}", assumptions, factors=factors)


def _affected(recording: Recording, wider: Bools, dtype: str) -> str:
    ops = recording.trace.device_ops
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[wider].sum() / max(length.sum(), 1))
    return f"{share_text(share)} of the device's work is products in a wider type than {dtype} now"


def _unknown_types(recording: Recording, rates: Floats) -> tuple[str, ...]:
    """Returns a sentence about products of unknown type."""
    ops = recording.trace.device_ops
    unknown = np.zeros(len(ops), np.bool_)
    for name, rows in rows_by_name(ops.name):
        precision = _product_precision(recording, name, int(rows[0]))
        unknown[rows] = precision is None or precision.dtype is None
    unknown &= (ops.work == Work.CONTRACTION) & (rates == 0)
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[unknown].sum() / max(length.sum(), 1))
    if share < MIN_UNKNOWN_SHARE:
        return ()
    return (f"{share_text(share)} of the device's work is products of unknown type, which stay the same",)


def _rates(recording: Recording, device: DeviceModel, dtype: str) -> Floats:
    """Returns the current arithmetic rate of each product in a wider type, in TFLOP/s; 0 for all other operations."""
    ops = recording.trace.device_ops
    rates = np.zeros(len(ops))
    for name, rows in rows_by_name(ops.name):
        precision = _product_precision(recording, name, int(rows[0]))
        if precision is not None and precision.dtype in WIDE_TYPES and precision.dtype != dtype:
            reach = (device.achievable or 1.0) if precision.unit == "tensor" else 1.0
            rates[rows] = (device.rate(precision) or device.vector or 0.0) * reach
    return np.where(ops.work == Work.CONTRACTION, rates, 0.0)


def _product_precision(recording: Recording, name: int, op: int) -> Precision | None:
    """Returns the precision of a product by its kernel's name, otherwise by its operands.

    The result is None, or has no type, if neither shows it. fp32 operands are assumed to be multiplied as TF32, which
    gives the smaller gain.
    """
    operand = operand_type(recording, op)
    precision = with_operand_type(precision_of(recording.trace.names[name]), operand)
    if operand != FLOAT_OPERAND or (precision is not None and precision.dtype is not None):
        return precision
    return Precision("tensor", "tf32")


def _factors(recording: Recording, ratio: Floats, devices: DevicePair | None, half: bool, estimate: Estimate) -> Floats:
    """Returns the factors of the operations; `ratio` is the new rate / the current one, 0 for unchanged operations."""
    ops, products, gain = recording.trace.device_ops, ratio > 0, np.maximum(ratio, 1.0)
    length = ops.end - ops.start
    is_known = recording.kernel_bounds.bound_by != BoundBy.UNKNOWN
    at_peak, at_bandwidth = times_at_roofs(recording, devices)
    now = np.maximum(at_peak, at_bandwidth)
    then = np.maximum(at_peak / gain, at_bandwidth * (0.5 if half else 1.0))
    by_roof = then / np.where(is_known, np.maximum(now, 1e-9), 1.0)
    by_name = {Estimate.EXPECTED: 1 / np.sqrt(gain), Estimate.LOW: 1 / np.sqrt(np.sqrt(gain)), Estimate.HIGH: 1 / gain}[
        estimate
    ]
    factors = np.where(products, np.where(is_known, by_roof, by_name) * CAST_OVERHEAD[estimate], 1.0)
    if half:
        # Operations between products that are already in half precision are in half precision too.
        wide_share = float(length[products].sum() / max(length[ops.work == Work.CONTRACTION].sum(), 1))
        factors = np.where(
            np.isin(ops.work, (Work.STREAMING, Work.UNKNOWN)), 1 - (1 - AUTOCAST_BYTES[estimate]) * wide_share, factors
        )
    return np.asarray(np.where(length < TOO_SHORT_NS, 1.0, np.minimum(factors, 1.0)), np.float64)
