"""Measures of the storage that the loader reads: its kind, the bytes per sample, and the workers that wait for it."""

from collections import defaultdict

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.telemetry.input_pipeline import (
    configured_workers,
    cores_busy,
    live_workers,
    while_starved,
    worker_busy,
)
from tb_bottleneck.units import NS_PER_S

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
"""Below this pressure on the cores (PSI some), as in the rule of `host`, no worker waits for one for long."""

ALL_CORES = 0.9
"""If this part of the usable cores is busy, as in the rule of `input`, a worker may wait for one."""


def dataset_storage(recording: TelemetryRecording) -> Measure | Missing:
    """The kind of storage that the data set lies on (text)."""
    kind, system = recording.facts.get("dataset_storage"), recording.facts.get("dataset_filesystem")
    if kind not in _STORAGE:
        return Missing("where the data set lies is not among the facts of the run")
    name = f" ({system})" if isinstance(system, str) and system.isalnum() else ""
    return text_measure(_STORAGE[kind] + name)


def storage_advice(recording: TelemetryRecording) -> Measure | Missing:
    """What to do about this kind of storage (text)."""
    return text_measure(_STORAGE_ADVICE[str(recording.facts.get("dataset_storage"))])


def read_per_sample(recording: TelemetryRecording) -> Measure | Missing:
    """Bytes that the loader's processes read per sample, from files, caches and pipes (bytes)."""
    name = "worker_read" if configured_workers(recording) else "process_read"
    rate, samples = while_starved(recording, name, "bytes_per_s"), recording.per_step("samples", "count")
    wall = recording.per_step("wall", "ns")
    if isinstance(rate, Missing) or isinstance(samples, Missing) or isinstance(wall, Missing) or samples.value <= 0:
        return rate if isinstance(rate, Missing) else Missing(recording.why_missing("samples"))
    return Measure(rate.value * wall.value / NS_PER_S / samples.value, "bytes", "sample", rate.count, EVIDENCE_SOURCE)


def workers_wait(recording: TelemetryRecording) -> Measure | Missing:
    """Least part of the time in which the training waits that a worker neither runs nor waits for a core (share).

    While the training waits for a batch, a worker has one to make. If it ran and waited for a core for less of the
    whole time than that, it waited for something else in the rest: the storage, the network or a lock.
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
    """Returns the time in which a worker waits for a core (share of the time). 0 if no core is missing."""
    waiting, count = while_starved(recording, "worker_core_wait", "count"), live_workers(recording)
    if isinstance(waiting, Measure) and isinstance(count, Measure) and count.value >= 0.5:
        return Measure(min(waiting.value / count.value, 1.0), "share", "", waiting.count, EVIDENCE_SOURCE)
    pressure, busy = while_starved(recording, "cpu_pressure", "share"), cores_busy(recording)
    all_busy = isinstance(busy, Measure) and busy.value >= ALL_CORES
    if isinstance(pressure, Measure) and pressure.value < NO_PRESSURE and not all_busy:
        return Measure(0.0, "share", "", pressure.count, EVIDENCE_SOURCE)
    return Missing(recording.why_missing("worker_core_wait"))
