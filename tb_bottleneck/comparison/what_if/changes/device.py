"""Changes the device, in the same machine."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import (
    device_by_sheet,
    device_named,
    device_of,
    unknown_device_reason,
    with_article,
)
from tb_bottleneck.comparison.devices.kernel_scaling import (
    DevicePair,
    bounds_on_b,
    collective_assumptions,
    link_bound_copies,
    scaled_lengths,
    vendor_assumptions,
)
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Floats


def device_pair_to(recording: Recording, name: str) -> DevicePair:
    """Returns the recording's device and the one with this name.

    Raises:
        NotFound: the device is not listed.
        CannotPredict: the recording's own device is not known.
    """
    target = device_named(name)
    # By its data sheet, like the other device: measured rates and data sheet rates have no meaningful ratio.
    current = device_by_sheet(recording.trace) or device_of(recording.trace)
    if current is None:
        raise CannotPredict(unknown_device_reason(recording.trace))
    return DevicePair(current, target)


def change_device(recording: Recording, devices: DevicePair) -> Change:
    """Returns the change of device: kernels by their roofs, copies by the link, the host unchanged."""

    def factors(estimate: Estimate) -> Floats:
        ops = recording.trace.device_ops
        return np.asarray(scaled_lengths(recording, devices, estimate) / np.maximum(ops.end - ops.start, 1), np.float64)

    bounds = bounds_on_b(recording, devices)
    assumptions = [
        "host, loader and storage stay the same",
        "each kernel reaches the same share of its roof; predictions of this kind have a mean error of 12 % (Habitat)",
    ]
    assumptions.extend([*vendor_assumptions(devices), *collective_assumptions(recording)])
    lacking = _lacking(recording, devices)
    if lacking:
        assumptions.append(f"products in {' and '.join(lacking)} run as fp32 there, because it has no units for them")
    if devices.b.multiprocessors is None:
        assumptions.append(
            f"the number of multiprocessors of the {devices.b.name} is not known: small grids count as full"
        )
    return Change(f"it ran on {with_article(devices.b.name)}", tuple(assumptions), factors=factors, bounds=bounds)


def slot_assumptions(recording: Recording, devices: DevicePair) -> tuple[str, ...]:
    """Returns what is assumed about the slot if none was requested and copies depend on it."""
    if not devices.a.link or not devices.b.link or devices.a.link == devices.b.link:
        return ()
    if not link_bound_copies(recording, recording.trace.device_ops).any():
        return ()
    return (
        f"it is in the best slot for this device, with {devices.b.link:.0f} GB/s usable instead of "
        f"{devices.a.link:.0f}; for another slot, state the link too",
    )


def _lacking(recording: Recording, devices: DevicePair) -> list[str]:
    """Returns the types of products that A's matrix units support and B's do not."""
    ops = recording.trace.device_ops
    names = np.unique(ops.name[ops.work == Work.CONTRACTION]).tolist()
    precisions = {precision_of(recording.trace.names[name]) for name in names}
    lacking = [
        precision
        for precision in precisions
        if precision is not None and devices.a.rate(precision) and not devices.b.rate(precision)
    ]
    return sorted({precision.dtype for precision in lacking if precision.dtype is not None})
