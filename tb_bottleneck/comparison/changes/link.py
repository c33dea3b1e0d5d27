"""Another link between host and device."""

import re

import numpy as np

from tb_bottleneck.comparison.changes.change import Change, Unpredictable
from tb_bottleneck.comparison.devices import Device, device_of, link_rate
from tb_bottleneck.comparison.scaling import linked
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.replay.world import Case
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import share_text

_SPELT = re.compile(r"(?:gen|pcie)?\s*(\d)\s*x\s*(\d{1,2})", re.IGNORECASE)
# Two links of one kind differ by this much: 80 to 88 % of what a link can carry was measured.
SPREAD = {Case.EXPECTED: 1.0, Case.LOW: 0.9, Case.HIGH: 1.1}


def to_link(recording: Recording, spelt: str, there: Device | None = None) -> Change:
    """A PCIe link as "gen4x16"; in the place of the best one of the device `there`, where the run is moved to another.

    Raises:
        Unpredictable: that is no link, or which one the recording was made over is not known.
    """
    found = _SPELT.fullmatch(spelt.strip())
    rate = link_rate(int(found[1]), int(found[2])) if found else None
    if found is None or rate is None:
        raise Unpredictable(f"{spelt!r} is no link that is known; write gen4x16.")
    now, how = _now(recording) if there is None else (there.link, f"the {there.name} would have the best slot")
    if now is None:
        raise Unpredictable("Over which link this was recorded is not known; the monitor's context records it.")
    ops = recording.trace.device_ops
    ratio, rows = rate / now, linked(recording, ops)
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[rows].sum() / max(recording.account.window, 1))

    def factors(case: Case) -> Floats:
        return np.where(rows, 1 / (ratio * SPREAD[case]), 1.0)

    told = (
        f"{how}: {now:.0f} GB/s usable now, {rate:.0f} then",
        f"copies that the link bounds take {share_text(share)} of the time now, on the device's own clock",
        "copies from pageable memory stay as they are: the host stages them",
    )
    return Change(f"the link were PCIe {found[1]}.0 with {found[2]} lanes", told, factors=factors)


def _now(recording: Recording) -> tuple[float | None, str]:
    """Usable GB/s of the recording's own link, and how that is known."""
    context = recording.trace.header.context
    generation, lanes = context.get("link_generation"), context.get("link_lanes", context.get("link_width"))
    if isinstance(generation, int) and isinstance(lanes, int):
        return link_rate(generation, lanes), "the link as the run recorded it"
    device = device_of(recording.trace)
    return (device.link if device is not None else None), "the recording is taken to have the best slot of its device"
