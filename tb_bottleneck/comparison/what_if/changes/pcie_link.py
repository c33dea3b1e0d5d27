"""Changes the link between host and device."""

import re
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import MAX_LANES, MIN_GENERATION, DeviceModel, device_of, link_rate
from tb_bottleneck.comparison.devices.kernel_scaling import (
    MIN_LINK_BOUND_BYTES,
    DevicePair,
    link_bound_copies,
    link_time_factors,
)
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.errors import NotFound
from tb_bottleneck.knowledge.pcie import lane_rates
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.pcie_link import SCENARIO
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import share_text

_LINK = re.compile(r"(?:gen|pcie)?\s*(\d)\s*x\s*(\d{1,2})", re.IGNORECASE)
# Links of one kind differ by this much: 80 to 88 % of their capacity was measured.
LINK_SPREAD = {Estimate.EXPECTED: 1.0, Estimate.LOW: 0.9, Estimate.HIGH: 1.1}


def change_link(recording: Recording, text: str, new_device: DeviceModel | None = None) -> Change:
    """Returns the change to a PCIe link such as "gen4x16".

    If the run also moves to the device `new_device`, the link replaces the best one of that device, and `with_link`
    already scales the copies over it.

    Raises:
        CannotPredict: the recording's link is not known.
        NotFound: there is no such link.
    """
    generation, lanes, rate = _parse(text)
    now, how = (
        _now(recording)
        if new_device is None
        else (new_device.link, f"instead of the best slot for the {new_device.name}")
    )
    if now is None:
        raise CannotPredict("The link of this recording is unknown; the monitor records it.")
    ops = recording.trace.device_ops
    ratio, rows = rate / now, link_bound_copies(recording, ops)
    staged = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)) & (ops.bytes >= MIN_LINK_BOUND_BYTES) & ~rows
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[rows].sum() / max(recording.account.window, 1))

    def factors(estimate: Estimate) -> Floats:
        # Copies that the host stages use the link too, so they take at least that long.
        least = ops.bytes / (rate * LINK_SPREAD[estimate]) / np.maximum(ops.end - ops.start, 1)
        by_link = link_time_factors(ops, now, ratio, estimate) / LINK_SPREAD[estimate] if new_device is None else 1.0
        return np.where(rows, by_link, np.where(staged, np.maximum(least, 1.0), 1.0))

    assumptions = (
        f"{how}: {_rate(now)} GB/s usable {'now' if new_device is None else 'in it'}, {_rate(rate)} then",
        f"copies that the link limits take {share_text(share)} of the time now, on the device's own clock",
        "copies from pageable memory gain nothing, because the host stages them, and are never faster than the link",
    )
    wide = f"{lanes} lane{'s' if lanes > 1 else ''}"
    return Change(f"the link were PCIe {generation}.0 with {wide}", assumptions, factors=factors, fix=SCENARIO)


def with_link(recording: Recording, devices: DevicePair, text: str) -> DevicePair:
    """Returns the pair with B on this link and A on the recording's link. Raises NotFound."""
    now, _ = _now(recording)
    return DevicePair(replace(devices.a, link=now or devices.a.link), replace(devices.b, link=_parse(text)[2]))


def _parse(text: str) -> tuple[int, int, float]:
    """Returns generation, lanes and usable GB/s of a link. Raises NotFound."""
    match = _LINK.fullmatch(text.strip())
    rate = link_rate(int(match[1]), int(match[2])) if match else None
    if match is None or rate is None:
        raise NotFound(
            f"{text!r} is not a known link; write it as in gen4x16, with a generation from {MIN_GENERATION} to "
            f"{max(lane_rates())} and up to {MAX_LANES} lanes"
        )
    return int(match[1]), int(match[2]), rate


def _rate(rate: float) -> str:
    """Formats GB/s: 25, or 1.6."""
    return f"{rate:.0f}" if rate >= 9.95 else f"{rate:.1f}"


def _now(recording: Recording) -> tuple[float | None, str]:
    """Returns the usable GB/s of the recording's link, and how it is known."""
    context = recording.trace.header.context
    generation, lanes = context.get("link_generation"), context.get("link_lanes", context.get("link_width"))
    if isinstance(generation, int) and isinstance(lanes, int):
        return link_rate(generation, lanes), "the link as the run recorded it"
    device = device_of(recording.trace)
    return (device.link if device is not None else None), "the recording is assumed to use the best slot for its device"
