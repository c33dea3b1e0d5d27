"""Measures of the storage that the loader reads, and of the link between host and device.

Measures of the storage are its kind, the bytes read per sample, and the time for which workers wait. Measures of the
link are its speed under load, its highest speed, and the time of copies.
"""

from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_accounts import link_bandwidth
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.bottlenecks.input.pipeline import (
    configured_workers,
    cores_busy,
    live_workers,
    while_starved,
    worker_busy,
)
from tb_bottleneck.knowledge.gpus import gpu_named, lane_rates, link_text

_STORAGE = {
    "rotational": "a rotating disk",
    "ssd": "a disk without moving parts",
    "network": "a network file system",
    "memory": "memory",
}
_TO_FAST_STORAGE = "copy the data to a local SSD or into memory once, before the training"
_STORAGE_ADVICE = defaultdict(
    lambda: f"pack small files into large shards, and {_TO_FAST_STORAGE}",
    rotational=f"{_TO_FAST_STORAGE}: a rotating disk needs milliseconds for each file",
    network=f"{_TO_FAST_STORAGE}: each file on a network needs a round trip",
    ssd="pack small files into large shards",
    memory="look for locks and network requests in the data set: the files are in memory",
)

NO_PRESSURE = 0.2
"""Below this pressure on the cores, no worker waits for a core for long. The pressure is the share of the time in which
at least one thread waits for a core (PSI `some`, 0 to 1). The rule of the regime `host` has the same limit."""

ALL_CORES = 0.9
"""If at least this share of the usable cores is busy, a worker may wait for a core. The rule of the regime `input` has
the same limit."""


def dataset_storage(recording: TelemetryRecording) -> Measure | Missing:
    """The kind of storage that the data set lies on, as text."""
    kind, system = recording.facts.get("dataset_storage"), recording.facts.get("dataset_filesystem")
    if kind not in _STORAGE:
        return Missing("where the data set lies is not among the facts of the run")
    name = f" ({system})" if isinstance(system, str) and system.isalnum() else ""
    return text_measure(_STORAGE[kind] + name)


def storage_advice(recording: TelemetryRecording) -> Measure | Missing:
    """What to do for data on the kind of storage that the data set lies on, as text."""
    return text_measure(_STORAGE_ADVICE[str(recording.facts.get("dataset_storage"))])


def read_per_sample(recording: TelemetryRecording) -> Measure | Missing:
    """Bytes per sample that the loader's processes read, from files, caches and pipes."""
    name = "worker_read" if configured_workers(recording) else "process_read"
    rate, samples = while_starved(recording, name, "bytes_per_s"), recording.per_step("samples", "count")
    wall = recording.per_step("wall", "ns")
    if isinstance(rate, Missing) or isinstance(samples, Missing) or isinstance(wall, Missing) or samples.value <= 0:
        return rate if isinstance(rate, Missing) else Missing(recording.why_missing("samples"))
    return Measure(rate.value * wall.value / NS_PER_S / samples.value, "bytes", "sample", rate.count, EVIDENCE_SOURCE)


def workers_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Lower bound of the time in which a worker waits for storage, network or a lock while the training waits for
    batches (share of the training's wait).

    While the training waits for a batch, a worker has a batch to make. If the worker neither runs nor waits for a core
    in this time, it waits for something else.
    """
    busy, queued = worker_busy(recording), workers_queue(recording)
    if isinstance(busy, Missing) or isinstance(queued, Missing):
        return busy if isinstance(busy, Missing) else queued
    wait, wall = recording.per_step("loader_wait", "ns"), recording.per_step("wall", "ns")
    if isinstance(wait, Missing) or isinstance(wall, Missing) or wait.value <= 0:
        return Missing(recording.why_missing("loader_wait"))
    needed = min(wait.value / wall.value, 1.0)
    idle = max(1.0 - (busy.value + queued.value) / needed, 0.0)
    return Measure(idle, "share", "", busy.count, EVIDENCE_SOURCE)


def workers_queue(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which a worker waits for a core (share of the time). The result is 0 if this time was not recorded, but
    cores are free."""
    waiting, count = while_starved(recording, "worker_core_wait", "count"), live_workers(recording)
    if isinstance(waiting, Measure) and isinstance(count, Measure) and count.value >= 0.5:
        return Measure(min(waiting.value / count.value, 1.0), "share", "", waiting.count, EVIDENCE_SOURCE)
    pressure, busy = while_starved(recording, "cpu_pressure", "share"), cores_busy(recording)
    all_busy = isinstance(busy, Measure) and busy.value >= ALL_CORES
    if isinstance(pressure, Measure) and pressure.value < NO_PRESSURE and not all_busy:
        return Measure(0.0, "share", "", pressure.count, EVIDENCE_SOURCE)
    return Missing(recording.why_missing("worker_core_wait"))


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
