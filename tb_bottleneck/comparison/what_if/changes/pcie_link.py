"""Another link between host and device."""

import re
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import Device, device_of, link_rate
from tb_bottleneck.comparison.devices.kernel_scaling import (
    LARGE_COPY_BYTES,
    DevicePair,
    link_bound_copies,
    link_time_factors,
)
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import share_text

_SPELT = re.compile(r"(?:gen|pcie)?\s*(\d)\s*x\s*(\d{1,2})", re.IGNORECASE)
# Two links of one kind differ by this much: 80 to 88 % of what a link can carry was measured.
LINK_SPREAD = {Estimate.EXPECTED: 1.0, Estimate.LOW: 0.9, Estimate.HIGH: 1.1}


def change_link(recording: Recording, spelt: str, there: Device | None = None) -> Change:
    """A PCIe link as "gen4x16"; in the place of the best one of the device `there`, where the run is moved to another:
    what becomes of copies over it is then told by the move, `over` this link.

    Raises:
        Unpredictable: that is no link, or which one the recording was made over is not known.
    """
    generation, lanes, rate = _spelt(spelt)
    now, how = _now(recording) if there is None else (there.link, f"instead of the best slot of the {there.name}")
    if now is None:
        raise CannotPredict("Over which link this was recorded is not known; the monitor's context records it.")
    ops = recording.trace.device_ops
    ratio, rows = rate / now, link_bound_copies(recording, ops)
    staged = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)) & (ops.bytes >= LARGE_COPY_BYTES) & ~rows
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[rows].sum() / max(recording.account.window, 1))

    def factors(estimate: Estimate) -> Floats:
        # What the host stages goes over the link too, so it takes no less than that.
        least = ops.bytes / (rate * LINK_SPREAD[estimate]) / np.maximum(ops.end - ops.start, 1)
        by_link = link_time_factors(ops, now, ratio, estimate) / LINK_SPREAD[estimate] if there is None else 1.0
        return np.where(rows, by_link, np.where(staged, np.maximum(least, 1.0), 1.0))

    told = (
        f"{how}: {_rate(now)} GB/s usable {'now' if there is None else 'in it'}, {_rate(rate)} then",
        f"copies that the link bounds take {share_text(share)} of the time now, on the device's own clock",
        "copies from pageable memory gain nothing, for the host stages them, and take no less than the link lets them",
    )
    wide = f"{lanes} lane{'s' if lanes > 1 else ''}"
    return Change(f"the link were PCIe {generation}.0 with {wide}", told, factors=factors)


def with_link(recording: Recording, move: DevicePair, spelt: str) -> DevicePair:
    """The same move with B on this link, from the one that the recording was made over. Raises Unpredictable."""
    now, _ = _now(recording)
    return DevicePair(replace(move.a, link=now or move.a.link), replace(move.b, link=_spelt(spelt)[2]))


def _spelt(spelt: str) -> tuple[int, int, float]:
    """Generation, lanes and usable GB/s of a link. Raises Unpredictable."""
    found = _SPELT.fullmatch(spelt.strip())
    rate = link_rate(int(found[1]), int(found[2])) if found else None
    if found is None or rate is None:
        raise CannotPredict(f"{spelt!r} is no link that is known; write gen4x16.")
    return int(found[1]), int(found[2]), rate


def _rate(rate: float) -> str:
    """GB/s for people: 25, or 1.6."""
    return f"{rate:.0f}" if rate >= 9.95 else f"{rate:.1f}"


def _now(recording: Recording) -> tuple[float | None, str]:
    """Usable GB/s of the recording's own link, and how that is known."""
    context = recording.trace.header.context
    generation, lanes = context.get("link_generation"), context.get("link_lanes", context.get("link_width"))
    if isinstance(generation, int) and isinstance(lanes, int):
        return link_rate(generation, lanes), "the link as the run recorded it"
    device = device_of(recording.trace)
    return (device.link if device is not None else None), "the recording is taken to have the best slot of its device"
