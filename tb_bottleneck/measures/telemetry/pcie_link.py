"""The link between host and device: what it runs at under load, what it could run at, and what copies take."""

import numpy as np

from tb_bottleneck.attribution.telemetry.device_bound import link_bandwidth
from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure

LOADED_FOR_LINK = 0.20
"""An idle link slows down to save power, so it is judged only in windows with this much utilisation."""


def transfer_time(testimony: TelemetryRecording) -> Measure | Missing:
    """Host time in calls that move tensors, per step (ns)."""
    return testimony.per_step("transfer", "ns")


def link_reached(testimony: TelemetryRecording) -> Measure | Missing:
    """Under load: the best that the link ran at, of what this GPU in this slot could run at (share)."""
    best = _best(testimony)
    return best if isinstance(best, Missing) else Measure(best[0], "share", "", best[1], EVIDENCE_SOURCE)


def link_speed(testimony: TelemetryRecording) -> Measure | Missing:
    """What the link runs at under load, and what it could (words)."""
    best = _best(testimony)
    if isinstance(best, Missing):
        return best
    generation, lanes, could_generation, could_lanes = best[2]
    return text_measure(f"generation {generation} x{lanes}, could be generation {could_generation} x{could_lanes}")


def link_traffic(testimony: TelemetryRecording) -> Measure | Missing:
    """Traffic over the link, both directions, mean (bytes per second)."""
    sent, received = (testimony.windows.mean(name, of_device=True) for name in ("pcie_sent", "pcie_received"))
    return testimony.mean(sent + received, "bytes_per_s", testimony.why_missing("pcie_received"))


def _best(testimony: TelemetryRecording) -> Missing | tuple[float, int, tuple[int, int, int, int]]:
    windows = testimony.windows
    loaded = np.nan_to_num(windows.mean("gpu_utilisation", of_device=True)) >= LOADED_FOR_LINK
    names = ("pcie_generation", "pcie_width", "pcie_generation_max", "pcie_width_max")
    read = [np.where(loaded, windows.mean(name, of_device=True), np.nan) for name in names]
    now, could = link_bandwidth(read[0], read[1]), link_bandwidth(read[2], read[3])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = now / could
    if not (ratio > 0).any():
        return Missing("the link's speed was not recorded while the device was loaded")
    at = int(np.nanargmax(ratio))
    values = [round(float(column[at])) for column in read]
    return min(float(ratio[at]), 1.0), int((ratio > 0).sum()), (values[0], values[1], values[2], values[3])
