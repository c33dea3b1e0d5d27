"""Products in another type."""

import numpy as np

from tb_bottleneck.comparison.changes.change import Change, Unpredictable
from tb_bottleneck.comparison.devices import Device, device_of, unknown_device
from tb_bottleneck.knowledge.precisions import Precision, precision_of
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.measures.roofs import Roof
from tb_bottleneck.measures.smallness import TOO_SHORT_NS
from tb_bottleneck.replay.world import Case
from tb_bottleneck.trace.device import Work
from tb_bottleneck.trace.table import Bools, Floats
from tb_bottleneck.units import share_text

PRECISIONS = ("bf16", "fp16", "tf32")
WIDE = ("fp32", "tf32", "fp64")
# Of what is not a product, autocast moves a part in half of the bytes; norms, softmax and losses stay as they are.
MOVED = {Case.EXPECTED: 0.75, Case.LOW: 1.0, Case.HIGH: 0.5}
# Casting costs some kernels of its own: 3 to 5 % of the time of products.
CASTS = {Case.EXPECTED: 1.04, Case.LOW: 1.05, Case.HIGH: 1.03}


def to_precision(recording: Recording, dtype: str, there: Device | None = None) -> Change:
    """Products and convolutions that run in a wider type run in this one, on matrix units: those of the device `there`,
    where the run is moved to another one as well.

    Raises:
        Unpredictable: the device is not known or has no units for this type, or no product runs in a wider one.
    """
    device = there or device_of(recording.trace)
    if device is None:
        raise Unpredictable(unknown_device(recording.trace))
    target = device.tensor.get(dtype)
    if target is None:
        raise Unpredictable(f"{device.name} has no matrix units for {dtype}.")
    rates = _rates(recording, device, dtype)
    if not (rates > 0).any():
        raise Unpredictable(
            f"No product of this recording is known to run in a type that {dtype} would be faster than."
        )
    half = dtype != "tf32"
    ratio = np.divide(target * (device.achievable or 1.0), rates, out=np.ones(len(rates)), where=rates > 0)

    def factors(case: Case) -> Floats:
        return _factors(recording, np.maximum(ratio, 1.0), rates > 0, half, case)

    told: tuple[str, ...] = (
        _affected(recording, rates > 0, dtype),
        "products gain what the units can do, where their roof is known from shapes; else the square root of it",
    )
    if half:
        told += (
            "the training converges in this type; norms, softmax and losses stay in fp32, as autocast leaves them",
        )
    return Change(f"products ran in {dtype}", told, factors=factors)


def _affected(recording: Recording, wider: Bools, dtype: str) -> str:
    ops = recording.trace.device_ops
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[wider].sum() / max(length.sum(), 1))
    return f"{share_text(share)} of the device's work is products in a wider type than {dtype} now"


def _rates(recording: Recording, device: Device, dtype: str) -> Floats:
    """What arithmetic now bounds each product that runs in a wider type, in TFLOP/s; 0 for all other operations."""
    ops = recording.trace.device_ops
    rates = np.zeros(len(ops))
    for name in np.unique(ops.name[ops.work == Work.CONTRACTION]).tolist():
        precision = precision_of(recording.trace.names[name]) or Precision("vector", "fp32")
        if precision.dtype in WIDE and precision.dtype != dtype:
            reach = (device.achievable or 1.0) if precision.unit == "tensor" else 1.0
            rates[ops.name == name] = (device.rate(precision) or 0.0) * reach
    return rates


def _factors(recording: Recording, ratio: Floats, products: Bools, half: bool, case: Case) -> Floats:
    ops, roofs = recording.trace.device_ops, recording.roofs
    length = ops.end - ops.start
    known = roofs.roof != Roof.UNKNOWN
    compute = roofs.roof == Roof.COMPUTE
    at_peak = np.where(compute, roofs.reached, roofs.other) / ratio
    at_bandwidth = np.where(compute, roofs.other, roofs.reached) * (0.5 if half else 1.0)
    by_roof = np.maximum(at_peak, at_bandwidth) / np.where(known, np.maximum(roofs.reached, 1e-9), 1.0)
    untold = {Case.EXPECTED: 1 / np.sqrt(ratio), Case.LOW: 1 / np.sqrt(np.sqrt(ratio)), Case.HIGH: 1 / ratio}[case]
    found = np.where(products, np.where(known, by_roof, untold) * CASTS[case], 1.0)
    if half:
        # What stands between products that are in half precision already is so too.
        wide = float(length[products].sum() / max(length[ops.work == Work.CONTRACTION].sum(), 1))
        found = np.where(np.isin(ops.work, (Work.STREAMING, Work.UNKNOWN)), 1 - (1 - MOVED[case]) * wide, found)
    return np.asarray(np.where(length < TOO_SHORT_NS, 1.0, np.minimum(found, 1.0)), np.float64)
