"""Planted problems are found in a snapshot, with the line; a healthy run is not accused."""

import pickle

import pytest
from helpers.simulated_allocator import SimulatedAllocator
from helpers.snapshots import BASE, block, segment

from tb_bottleneck.memory.finding import MemoryFinding
from tb_bottleneck.memory.snapshot.snapshot_findings import findings_of_snapshot
from tb_bottleneck.memory.snapshot.snapshot_memory import snapshot_memory
from tb_bottleneck.sources.snapshot.allocator_snapshot import snapshot_of


def found(raw: dict) -> dict[str, MemoryFinding]:
    memory = snapshot_memory(snapshot_of(iter([pickle.dumps(raw)])))
    return {finding.cause: finding for finding in findings_of_snapshot(memory)}


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_training_has_no_finding(seed):
    assert not found(SimulatedAllocator(6, seed).snapshot())


def test_a_leak_is_named_with_its_line():
    finding = found(SimulatedAllocator(7, 0, leak=200_704).snapshot())["growing_memory"]
    values = {value.name: value.value for value in finding.evidence}
    assert values["per_step"] == 200_704
    assert values["at"] == "/home/me/model.py:31 forward"


@pytest.mark.parametrize(("asked", "cause"), [(1 << 30, "out_of_memory"), (1 << 20, "out_of_memory_fragmented")])
def test_a_failed_request_is_reported(asked, cause):
    raw = SimulatedAllocator(2, 0).snapshot()
    time = raw["device_traces"][0][-1]["time_us"] + 1
    oom = {"action": "oom", "device_free": 2 << 20, "size": asked, "stream": 0, "time_us": time, "frames": []}
    raw["device_traces"][0].append(oom)
    evidence = {value.name: value.value for value in found(raw)[cause].evidence}
    assert evidence["asked"] == asked
    assert evidence["device_free"] == 2 << 20


def test_split_segments_are_fragmentation():
    raw = {"segments": [segment(BASE, [block(1 << 20), block(3 << 20, state="inactive")])], "device_traces": []}
    assert found(raw)["fragmentation"].bytes == 3 << 20
