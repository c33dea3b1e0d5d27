"""Another device in the same machine."""

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
    collective_assumptions,
    link_bound_copies,
    roofs_there,
    scaled_lengths,
    vendor_assumptions,
)
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Floats


def device_pair_to(recording: Recording, name: str) -> DevicePair:
    """From the recording's device to the one with this name.

    Raises:
        NotFound: no such device is written down.
        Unpredictable: the recording's own device is not known.
    """
    there = device_named(name)
    # By its data sheet, as the other one is: what one device reached and what the other's maker prints are no ratio.
    here = device_by_sheet(recording.trace) or device_of(recording.trace)
    if here is None:
        raise CannotPredict(unknown_device_reason(recording.trace))
    return DevicePair(here, there)


def change_device(recording: Recording, move: DevicePair) -> Change:
    """The change of device: kernels by their roofs, copies by the link, everything on the host as it is."""

    def factors(estimate: Estimate) -> Floats:
        ops = recording.trace.device_ops
        return np.asarray(scaled_lengths(recording, move, estimate) / np.maximum(ops.end - ops.start, 1), np.float64)

    roofs = roofs_there(recording, move)
    assumptions = [
        "the host, the loader and the storage stay as they are",
        "each kernel reaches the same share of its roof; predictions of this kind miss by 12 % on average (Habitat)",
    ]
    assumptions.extend([*vendor_assumptions(move), *collective_assumptions(recording)])
    lacking = _lacking(recording, move)
    if lacking:
        assumptions.append(f"products in {' and '.join(lacking)} run as fp32 there: it has no units for them")
    if move.b.multiprocessors is None:
        assumptions.append(f"how many multiprocessors the {move.b.name} has is not known: small grids count as full")
    return Change(f"it ran on {with_article(move.b.name)}", tuple(assumptions), factors=factors, roofs=roofs)


def slot_assumptions(recording: Recording, move: DevicePair) -> tuple[str, ...]:
    """What is assumed of the slot that nobody asked about, where copies go by it."""
    if not move.a.link or not move.b.link or move.a.link == move.b.link:
        return ()
    if not link_bound_copies(recording, recording.trace.device_ops).any():
        return ()
    return (
        f"it has the best slot of its kind, {move.b.link:.0f} GB/s usable instead of {move.a.link:.0f}; for another "
        "slot, ask for that link as well",
    )


def _lacking(recording: Recording, move: DevicePair) -> list[str]:
    """Types of products that A's matrix units know and B's do not."""
    ops = recording.trace.device_ops
    names = np.unique(ops.name[ops.work == Work.CONTRACTION]).tolist()
    found = {precision_of(recording.trace.names[name]) for name in names}
    known = [one for one in found if one is not None and move.a.rate(one) and not move.b.rate(one)]
    return sorted({one.dtype for one in known if one.dtype is not None})
