"""Predicts a run whose matrix multiplications and convolutions run in another type."""

from functools import partial

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.compute.fixes import MIXED_PRECISION
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import types_multiplied
from tb_bottleneck.bottlenecks.compute.product_precision import (
    HALF_TYPES,
    multiplied_in,
    precision_factors,
    rates_of_wider_products,
    rows_by_name,
    with_autocast_dispatch,
)
from tb_bottleneck.comparison.devices.device_rates import DeviceModel, device_of, unknown_device_reason
from tb_bottleneck.comparison.devices.kernel_scaling import DevicePair, times_at_roofs
from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenario import CannotPredict, ParameterScenario, unchanged
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Bools, Floats

PRECISIONS = ("bf16", "fp16", "tf32")
MIN_UNKNOWN_SHARE = 0.05  # smallest share of the device time that is mentioned as work of unknown type


def change_precision(recording: Recording, dtype: str, devices: DevicePair | None = None) -> ParameterScenario:
    """Returns the change to `dtype` (one of PRECISIONS) for matrix multiplications and convolutions in a wide type
    (fp64, fp32 or tf32). After the change, these operations run on matrix units.

    If `devices` is given, the run also moves to the device `devices.b`. Then, the rates of that device are used.

    Raises:
        CannotPredict: the device is not known or has no matrix units for `dtype`, or nothing runs in a wider type.
    """
    device = devices.b if devices is not None else device_of(recording.trace)
    if device is None:
        raise CannotPredict(unknown_device_reason(recording.trace))
    target = device.tensor.get(dtype)
    if target is None:
        raise CannotPredict(f"{device.name} has no matrix units for {dtype}.")
    rates = rates_of_wider_products(recording, dtype, partial(_rate, device))
    if not (rates > 0).any():
        types = types_multiplied(recording)
        now = "" if isinstance(types, Missing) else f" They run in {types.text}."
        raise CannotPredict(f"No product of this recording is known to run in a type slower than {dtype}.{now}")
    half = dtype in HALF_TYPES
    ratio = np.divide(target * (device.achievable or 1.0), rates, out=np.zeros(len(rates)), where=rates > 0)

    def factors(estimate: Estimate) -> Floats:
        return precision_factors(recording, ratio, times_at_roofs(recording, devices), half, estimate)

    assumptions: tuple[str, ...] = (
        _affected(recording, rates > 0, dtype),
        *_unknown_types(recording, rates),
        "products gain the ratio of the units' rates if their roof is known from shapes, otherwise its square root",
    )
    if half:
        assumptions += ("training converges in this type; norms, softmax and losses stay in fp32, as with autocast",)
        assumptions += ("the host needs time to cast the operands of products, as with autocast",)
    return ParameterScenario(
        "precision",
        (lambda graph, estimate: with_autocast_dispatch(graph, rates > 0, estimate)) if half else unchanged,
        clause=f"products ran in {dtype}",
        assumptions=assumptions,
        factors=factors,
        fix=MIXED_PRECISION,
    )


def _affected(recording: Recording, wider: Bools, dtype: str) -> str:
    """Returns a sentence with the share of device time of the operations in the mask `wider`, which change to
    `dtype`."""
    ops = recording.trace.device_ops
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[wider].sum() / max(length.sum(), 1))
    return f"{share_text(share)} of the device's work is products in a wider type than {dtype} now"


def _unknown_types(recording: Recording, rates: Floats) -> tuple[str, ...]:
    """Returns a tuple with a sentence about contractions of unknown type, which keep their time; empty if they take
    less than MIN_UNKNOWN_SHARE of the device time. `rates` is 0 for operations that do not change."""
    ops = recording.trace.device_ops
    unknown = np.zeros(len(ops), np.bool_)
    for name, rows in rows_by_name(ops.name):
        precision = multiplied_in(recording, name, int(rows[0]))
        unknown[rows] = precision is None or precision.dtype is None
    unknown &= (ops.work == Work.CONTRACTION) & (rates == 0)
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[unknown].sum() / max(length.sum(), 1))
    if share < MIN_UNKNOWN_SHARE:
        return ()
    return (f"{share_text(share)} of the device's work is products of unknown type, which stay the same",)


def _rate(device: DeviceModel, precision: Precision) -> float | None:
    """Returns the arithmetic rate in TFLOP/s that kernels of this precision can reach on the device. If the device has
    no units for the type, this is the rate of its vector units. Returns None if the rate is not known."""
    rate = device.rate(precision) or device.vector
    return rate * (device.achievable or 1.0) if rate and precision.unit == "tensor" else rate
