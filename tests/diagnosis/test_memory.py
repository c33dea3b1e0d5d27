"""A snapshot gets a report with a memory part, or the reason why it cannot be read."""

import json
import os
import pickle

from helpers.simulated_allocator import SimulatedAllocator

from tb_bottleneck.__main__ import main
from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot
from tb_bottleneck.text.report import render


def test_a_snapshot_has_a_memory_part_and_no_verdict(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(SimulatedAllocator(4, 0).snapshot()))
    report = diagnose_snapshot(str(path))
    assert report.health.status == "ok"
    assert not report.HasField("verdict")
    assert sum(part.bytes for part in report.memory.parts) == report.memory.peak_bytes == report.memory.reserved_bytes
    assert "Memory at the peak" in render(report)


def test_the_command_reads_a_snapshot(tmp_path, capsys):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(SimulatedAllocator(4, 0).snapshot()))
    assert main(["diagnose", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["reports"][0]["memory"]["evidence_source"] == "snapshot"


class Attack:
    """Its pickle calls a function."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_malicious_snapshot_is_unreadable_and_has_no_effect(tmp_path, capsys):
    path, harm = tmp_path / "snapshot.pickle", tmp_path / "harm"
    path.write_bytes(pickle.dumps({"segments": [Attack(harm)], "device_traces": []}))
    assert main(["diagnose", str(path)]) == 1
    assert "can execute code" in capsys.readouterr().out
    assert not harm.exists()


def test_a_missing_file_is_unreadable(tmp_path):
    assert diagnose_snapshot(str(tmp_path / "none.pickle")).health.status == "unreadable"
