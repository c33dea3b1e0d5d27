"""Measures of the link between host and device: its speed under load, its highest speed, and the time of copies."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_accounts import link_bandwidth
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.knowledge.gpus import gpu_named, lane_rates, link_text

LOADED_FOR_LINK = 0.20
"""The link is judged in windows with at least this utilisation: an idle link slows down to save power."""


def transfer_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step in calls that move tensors between host and device (ns)."""
    return recording.per_step("transfer", "ns")


def link_reached(recording: TelemetryRecording) -> Measure | Missing:
    """Highest speed of the PCIe link while the device is loaded (share of the highest speed of this GPU in this
    slot)."""
    best = _best(recording)
    return best if isinstance(best, Missing) else Measure(best[0], "share", "", best[1], EVIDENCE_SOURCE)


def link_speed(recording: TelemetryRecording) -> Measure | Missing:
    """Generation and number of lanes of the PCIe link under load, and the highest possible ones, as text."""
    best = _best(recording)
    if isinstance(best, Missing):
        return best
    generation, lanes, max_generation, max_lanes = best[2]
    most = (_device_generation(recording), _device_lanes(recording))
    return text_measure(link_text((generation, lanes), (max_generation, max_lanes), *most))


def slot_limit(recording: TelemetryRecording) -> Measure | Missing:
    """Highest rate of the link in this slot / highest rate that the device supports, from its own highest generation
    and number of lanes (share)."""
    best, device, lanes = _best(recording), _device_generation(recording), _device_lanes(recording)
    if isinstance(best, Missing) or (device is None and lanes is None):
        return best if isinstance(best, Missing) else Missing(recording.why_missing("pcie_generation_gpu_max"))
    generation, width = best[2][2:]
    rates = lane_rates()
    in_slot, most = rates.get(generation), rates.get(generation if device is None else device)
    if in_slot is None or most is None:
        return Missing("the rate of this generation of the link is not known")
    by_lanes = min(width / lanes, 1.0) if lanes is not None else 1.0
    return Measure(min(in_slot / most, 1.0) * by_lanes, "share", "", best[1], EVIDENCE_SOURCE)


def slot_lanes(recording: TelemetryRecording) -> Measure | Missing:
    """Lanes of the link in this slot / lanes of a device with this name (share)."""
    best, lanes = _best(recording), _device_lanes(recording)
    if isinstance(best, Missing) or lanes is None:
        return best if isinstance(best, Missing) else Missing("the lanes of this device are not known")
    return Measure(min(best[2][3] / lanes, 1.0), "share", "", best[1], EVIDENCE_SOURCE)


def pinning(recording: TelemetryRecording) -> Measure | Missing:
    """The loader's pin_memory, as text: "False" or "not recorded"; missing if pin_memory is True."""
    pins = recording.facts.get("pin_memory")
    if pins is True:
        return Missing("the loader pins its batches")
    return text_measure("False" if pins is False else "not recorded")


def link_traffic(recording: TelemetryRecording) -> Measure | Missing:
    """Mean traffic over the link in both directions (bytes per second)."""
    sent, received = (recording.windows.mean(name, of_device=True) for name in ("pcie_sent", "pcie_received"))
    return recording.mean(sent + received, "bytes_per_s", recording.why_missing("pcie_received"))


def _device_generation(recording: TelemetryRecording) -> int | None:
    """Returns the highest PCIe generation that the device supports, or None if this generation was not recorded."""
    values = recording.windows.readings("pcie_generation_gpu_max", of_device=True)[1]
    return round(float(values.max())) if len(values) else None


def _device_lanes(recording: TelemetryRecording) -> int | None:
    """Returns the number of PCIe lanes of a device with the run's device name, or None if the number is not known."""
    gpu = gpu_named(str(recording.facts.get("device_name", "")))
    return gpu.pcie.lanes if gpu is not None else None


def _best(recording: TelemetryRecording) -> Missing | tuple[float, int, tuple[int, int, int, int]]:
    """Returns (highest speed of the link under load / highest possible speed, number of windows with a value, state of
    the link in the window with the highest speed). Returns Missing if the speed was not recorded under load.

    The state is (generation, lanes, highest generation in this slot, highest number of lanes in this slot).
    """
    windows = recording.windows
    loaded = np.nan_to_num(windows.mean("gpu_utilisation", of_device=True)) >= LOADED_FOR_LINK
    names = ("pcie_generation", "pcie_width", "pcie_generation_max", "pcie_width_max")
    columns = [np.where(loaded, windows.mean(name, of_device=True), np.nan) for name in names]
    current, highest = link_bandwidth(columns[0], columns[1]), link_bandwidth(columns[2], columns[3])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = current / highest
    if not (ratio > 0).any():
        return Missing("the link's speed was not recorded while the device was loaded")
    best = int(np.nanargmax(ratio))
    values = [round(float(column[best])) for column in columns]
    return min(float(ratio[best]), 1.0), int((ratio > 0).sum()), (values[0], values[1], values[2], values[3])
