"""A damaged snapshot gives a report whose parts sum to the peak, or a reason; never an unexpected error."""

import json
import os
import pickle
import random

import numpy as np
import pytest
from helpers.simulated_allocator import SimulatedAllocator

from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot, snapshot_memory
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.sources.snapshot.allocator_snapshot import read_snapshot

CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "40"))
VALUES = (0, -1, 1, 512, 1 << 31, 1 << 40, (1 << 62) - 1, 1 << 63, 1 << 70, 0.5, None, True, "x", "alloc", [], {}, [[]])


def damaged(seed: int) -> dict:
    """Returns a simulated snapshot in which some values are replaced, and some entries are lost or repeated."""
    chance = random.Random(seed)
    raw = SimulatedAllocator(3, seed).snapshot()
    places = [raw["device_traces"][0], raw["segments"], [seg["blocks"][0] for seg in raw["segments"]]]
    places.append(raw["external_annotations"])
    for _ in range(chance.choice([1, 3, 30])):
        entries = chance.choice(places)
        entry = chance.choice(entries)
        match chance.randrange(4):
            case 0:
                entries.remove(entry) if len(entries) > 1 else None
            case 1:
                entries.insert(chance.randrange(len(entries)), dict(entry))
            case _:
                entry[chance.choice([*entry])] = chance.choice(VALUES)
    return raw


@pytest.mark.parametrize("seed", range(CASES))
def test_values_that_make_no_sense_cost_only_their_own_report(seed, tmp_path):
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(damaged(seed), 4))
    report = diagnose_snapshot(str(path))
    assert report.health.status in ("ok", "unreadable")
    assert [reason.code for reason in report.health.reasons if reason.code == "broken"] == []
    assert sum(part.bytes for part in report.memory.parts) == pytest.approx(report.memory.peak_bytes)
    json.loads(as_json(report))


@pytest.mark.parametrize("late", [1 << 51, 0])
def test_entries_stay_in_order_where_times_are_damaged(late, tmp_path):
    raw = SimulatedAllocator(3, 1).snapshot()
    entries = raw["device_traces"][0]
    entries[len(entries) // 3]["time_us"] = late
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(raw, 4))
    memory = snapshot_memory(read_snapshot(str(path)))
    assert (np.diff(memory.events.time) >= 0).all()
    assert [reason.code for reason in diagnose_snapshot(str(path)).health.reasons] == []


def test_a_malicious_snapshot_is_an_unreadable_recording(tmp_path):
    path = tmp_path / "a.pickle"
    path.write_bytes(b"\x80\x04}\x94(\x8c\x08segments\x94\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85Ru.")
    report = diagnose_snapshot(str(path))
    assert report.health.status == "unreadable"
    assert "can execute code" in report.health.reasons[0].detail


def test_no_part_is_negative_where_a_segment_is_smaller_than_its_blocks(tmp_path):
    raw = SimulatedAllocator(3, 1).snapshot()
    raw["device_traces"] = [[]]  # no calls: the state at the end
    for segment in raw["segments"]:
        segment["total_size"] = 1
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(raw, 4))
    parts = diagnose_snapshot(str(path)).memory.parts
    assert parts
    assert min(part.bytes for part in parts) >= 0
