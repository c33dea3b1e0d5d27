"""Measures of the storage that the loader reads: its kind, the bytes read per sample, and the time for which workers
wait."""

from collections import defaultdict

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.bottlenecks.input.pipeline import (
    configured_workers,
    cores_busy,
    live_workers,
    storage_pressure,
    while_starved,
    worker_busy,
)

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
LITTLE_PRESSURE = 0.01
"""If threads wait for storage for less than this share of the device's wait, the loader waits for something else."""

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
    """What to do for data on the kind of storage that the data set lies on, as text. If no thread waits for a local
    disk, the files are in memory."""
    kind, waits = str(recording.facts.get("dataset_storage")), storage_pressure(recording)
    in_memory = kind != "network" and isinstance(waits, Measure) and waits.value < LITTLE_PRESSURE
    return text_measure(_STORAGE_ADVICE["memory" if in_memory else kind])


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
