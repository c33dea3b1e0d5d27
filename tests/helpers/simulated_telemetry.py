"""Simulates the telemetry that the monitor records of a training: a sequence of phases with a known problem each.

    healthy few_workers healthy  ─▶  steps (host phases, device span)  +  readings once a second  ─▶  packets

The host loads, copies, runs Python and dispatches. The device starts with the dispatch, and the host is at most one
step ahead of it, so a step takes the longer of the two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from helpers.telemetry_files import context

from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext

S = 1_000_000_000
BEGIN = 1_700_000_000 * S
UUID = "GPU-11111111-2222-3333-4444-555555555555"
STEADY = 100.0  # ms of device work in most problems


@dataclass(frozen=True)
class SimulatedPhase:
    """A part of a run with constant behaviour. Times in ms per step; shares from 0 to 1."""

    seconds: float = 120.0
    device: float | None = STEADY  # device work; None if the work runs on the CPU
    dispatch: float = 40.0
    load: float = 0.5
    copy: float = 0.5
    python: float = 1.0
    inside: float = 0.0  # device idle between kernels inside the phases
    syncs: float = 0.0
    blocks: float = 0.0
    retries: float = 0.0
    pause_every: int = 0
    pause: float = 0.0
    epoch: int = 0  # steps
    first_load: float = 0.0  # what the first batch of an epoch takes longer to load
    interrupted: dict[str, float] = field(default_factory=dict)
    """Time in every step by its column, such as `checkpoint`, outside the phases."""

    readings: dict[str, float] = field(default_factory=dict)
    """Readings that differ from those of a healthy machine."""


HEALTHY = {
    "memory_utilisation": 0.4,
    "memory_used": 30e9,
    "memory_total": 80e9,
    "power_limit": 700.0,
    "power_limit_default": 700.0,
    "temperature": 62.0,
    "sm_clock": 1.9e9,
    "sm_clock_max": 1.98e9,
    "clock_event_reasons": 0.0,
    "pcie_generation": 5.0,
    "pcie_generation_max": 5.0,
    "pcie_generation_gpu_max": 5.0,
    "pcie_width": 16.0,
    "pcie_width_max": 16.0,
    "pcie_sent": 0.5e9,
    "pcie_received": 2e9,
    "other_processes": 0.0,
    "other_processes_utilisation": 0.0,
    "tensor_activity": 0.7,
    "fp32_activity": 0.1,
    "dram_activity": 0.3,
    "sm_activity": 0.9,
    "power": 600.0,
}
HOST = {
    "cpu_busy_cores": 4.0,
    "cpu_usable_cores": 16.0,
    "process_cores": 1.0,
    "process_threads": 60.0,
    "worker_cores": 2.0,
    "worker_count": 4.0,
    "run_queue": 5.0,
    "cpu_pressure": 0.01,
    "io_pressure": 0.01,
    "memory_pressure": 0.0,
    "quota_throttled_total": 0.0,
    "disk_busy": 0.05,
}
WHILE_BUSY = ("tensor_activity", "fp32_activity", "dram_activity", "sm_activity")
FACTS: dict[str, Any] = {
    "device_kind": "cuda",
    "device_name": "NVIDIA H100 80GB HBM3",
    "device_uuid": UUID,
    "torch": "2.13.0",
    "torch_threads": 8,
    "cores": 16,
    "world_size": 1,
    "rank": 0,
}


@dataclass
class _Run:
    rng: np.random.Generator
    now: int = BEGIN
    number: int = 0
    steps: list[tuple[int, float, float, dict[str, float]]] = field(default_factory=list)
    readings: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)


def simulate(
    phases: Sequence[SimulatedPhase], seed: int = 0, facts: dict[str, Any] | None = None, without: Sequence[str] = ()
) -> list[RunContext | Packet]:
    """Returns the messages of a run with these phases; `without` names series and step columns to leave out."""
    run = _Run(np.random.default_rng(seed))
    _warm_up(run)
    for phase in phases:
        begin = run.now
        _steps(run, phase)
        _readings(run, phase, begin)
    return [context(FACTS if facts is None else facts), *_packets(run, frozenset(without))]


def _warm_up(run: _Run) -> None:
    for _ in range(3):
        run.now += 2 * S
        run.steps.append((run.number, run.now, 2e9, {"loader_wait": 1e9, "forward": 5e8, "device_busy": 1e9}))
        run.number += 1


def _steps(run: _Run, it: SimulatedPhase) -> None:
    end = run.now + it.seconds * S
    while run.now < end:
        load, copy, python, dispatch = (
            max(value * run.rng.normal(1.0, 0.05), 0.0) for value in (it.load, it.copy, it.python, it.dispatch)
        )
        if it.epoch and run.number % it.epoch == 0:
            load += it.first_load
        work = (it.device or 0.0) * run.rng.normal(1.0, 0.02)
        span = max(work + it.inside, dispatch if it.inside else 0.0)
        host = load + copy + python + dispatch
        wall = max(host, copy + span)  # a copy runs on the device's stream, before the kernels that need it
        phases = wall - load - copy - python
        paused = it.pause if it.pause_every and run.number % it.pause_every == 0 else 0.0
        wall += paused + sum(it.interrupted.values())
        run.now += int(wall * 1e6)
        columns = {
            "loader_wait": load,
            "transfer": copy,
            "forward": phases * 0.4,
            "backward": phases * 0.5,
            "optimizer": phases * 0.1,
        }
        columns |= it.interrupted
        if it.epoch:
            columns["epoch_start"] = load if run.number % it.epoch == 0 else 0.0
        columns = {name: value * 1e6 for name, value in columns.items()}
        if it.device is not None:
            columns["device_busy"] = min(span, wall) * 1e6
        columns |= {"syncs": it.syncs, "device_allocations": it.blocks, "device_frees": it.blocks}
        columns |= {"allocation_retries": it.retries, "samples": 32.0, "profiled": 0.0, "work": work * 1e6}
        run.steps.append((run.number, run.now, wall * 1e6, columns))
        run.number += 1


def _readings(run: _Run, it: SimulatedPhase, begin: int) -> None:
    own = [(end - wall, end, columns.get("work", 0.0)) for _, end, wall, columns in run.steps if end > begin]
    ends = np.array([end for _, end, _ in own])
    for at in range(begin, run.now, S):
        inside = (ends > at) & (ends <= at + S)
        worked = sum(work for (_, _, work), hit in zip(own, inside, strict=True) if hit) / S
        if not inside.any():  # a step longer than a second
            first = min(int(np.searchsorted(ends, at)), len(own) - 1)
            worked = own[first][2] / max(own[first][1] - own[first][0], 1)
        others = it.readings.get("other_processes_utilisation", 0.0)
        used = float(np.clip(worked * run.rng.normal(1.0, 0.03) + others, 0.0, 1.0))
        for name, healthy in HEALTHY.items():
            value = it.readings.get(name, healthy)
            if name in WHILE_BUSY:
                value *= min(used, 1.0)
            elif name == "power" and "power" not in it.readings:
                value = 80.0 + used * (value - 80.0)
            elif name == "clock_event_reasons" and used < 0.02:
                value = 1.0
            _read(run, name, UUID, at, value)
        _read(run, "gpu_utilisation", UUID, at, used)
        for name, healthy in HOST.items():
            value = it.readings.get(name, healthy)
            if name.endswith("_total"):
                value = run.counters[name] = run.counters.get(name, 0.0) + value
            _read(run, name, "host", at, value)


def _read(run: _Run, name: str, device: str, at: int, value: float) -> None:
    run.readings.setdefault((name, device), []).append((at, value))


def _packets(run: _Run, without: frozenset[str], seconds: int = 10) -> Iterator[Packet]:
    edges = range(BEGIN, run.now + seconds * S, seconds * S)
    last = 0
    pointers = dict.fromkeys(run.readings, 0)
    for sequence, edge in enumerate(edges):
        packet = Packet(schema=1, sequence=sequence)
        for (name, device), readings in run.readings.items():
            start = stop = pointers[name, device]
            while stop < len(readings) and readings[stop][0] < edge:
                stop += 1
            pointers[name, device] = stop
            if stop > start and name not in without:
                part = readings[start:stop]
                packet.series.add(name=name, device=device, unix_ns=[t for t, _ in part], values=[v for _, v in part])
        rows = []
        while last < len(run.steps) and run.steps[last][1] < edge:
            rows.append(run.steps[last])
            last += 1
        if rows and "steps" not in without:
            _add_rows(packet, rows, without)
        yield packet


def _add_rows(packet: Packet, rows: list[tuple[int, float, float, dict[str, float]]], without: frozenset[str]) -> None:
    packet.steps.number.extend(number for number, *_ in rows)
    packet.steps.end_unix_ns.extend(end for _, end, *_ in rows)
    packet.steps.wall_ns.extend(wall for _, _, wall, _ in rows)
    for name in sorted({name for *_, columns in rows for name in columns} - {"work"} - without):
        packet.steps.columns.add(name=name, values=[columns.get(name, float("nan")) for *_, columns in rows])
