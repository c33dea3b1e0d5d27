"""Memory events are read into columns, per device, and a lost event is noticed."""

import json
import os
from pathlib import Path

import pytest
from helpers.memory_recordings import RecordedAllocator

from tb_bottleneck.trace.columns import memory_events
from tb_bottleneck.trace.trace import load


def recorded() -> RecordedAllocator:
    allocator = RecordedAllocator(allocated=1 << 20, reserved=2 << 20)
    allocator.span("aten::mm", 0, 10)
    block = allocator.alloc(1, 512)
    allocator.alloc(2, 1024)
    allocator.free(5, block)
    return allocator


def test_sizes_and_totals_are_read():
    memory = recorded().trace().memory
    assert memory.size.tolist() == [512, 1024, -512]
    assert memory.allocated.tolist() == [(1 << 20) + 512, (1 << 20) + 1536, (1 << 20) + 1024]
    assert memory.reserved.tolist() == [2 << 20] * 3
    assert memory.time.tolist() == [1_000, 2_000, 5_000]
    assert memory.address[0] == memory.address[2] != memory.address[1]
    assert memory.whole_chain
    assert memory.with_addresses


def test_a_lost_event_breaks_the_chain():
    allocator = recorded()
    del allocator.events[2]
    assert not allocator.trace().memory.whole_chain


def test_devices_are_kept_apart():
    content = recorded().content()
    host = json.loads(json.dumps(content["traceEvents"][-1]))
    host["args"] |= {"Device Type": 0, "Device Id": -1, "Total Allocated": 4, "Bytes": 4}
    content["traceEvents"].append(host)
    memory = _load(content)
    assert len(memory.on(1, 0)) == 3
    assert memory.on(0, -1).size.tolist() == [4]


def test_events_of_old_versions_have_no_addresses():
    content = recorded().content()
    for event in content["traceEvents"]:
        event["args"] = {key: value for key, value in event["args"].items() if key in ("Bytes", "Device Type")}
    assert not _load(content).with_addresses


@pytest.mark.parametrize("value", [None, "x", [], {}, 1e300, -(2**70), True])
def test_malformed_values_do_not_raise(value):
    content = recorded().content()
    for key in list(content["traceEvents"][1]["args"]):
        content["traceEvents"][1]["args"][key] = value
    assert len(_load(content)) <= 3


def test_too_many_events_are_counted(monkeypatch):
    monkeypatch.setattr(memory_events, "MAX_MEMORY_EVENTS", 2)
    trace = recorded().trace()
    assert len(trace.memory) <= 2
    assert len(trace.memory) + trace.lost["memory events"] == 3


FOLDER = os.environ.get("TB_BOTTLENECK_TRACES")


@pytest.mark.skipif(not FOLDER, reason="TB_BOTTLENECK_TRACES names no folder with public traces")
@pytest.mark.parametrize("name", ["h100_bert_small", "mi300_vit_nsfw", "ptf_bs2_steady"])
def test_real_recordings_lose_no_event(name):
    memory = load(str(Path(FOLDER) / f"{name}.json.gz")).memory
    assert len(memory)
    for device_type, device in {*zip(memory.device_type.tolist(), memory.device.tolist(), strict=True)}:
        assert memory.on(device_type, device).whole_chain


def _load(content):
    allocator = RecordedAllocator()
    allocator.events = content["traceEvents"]
    return allocator.trace().memory
