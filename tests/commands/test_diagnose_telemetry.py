"""Tests of `diagnose` with telemetry: its report is printed next to those of traces, and they refer to each other."""

import json
from pathlib import Path

import pytest
from helpers.draw import drawn
from helpers.simulated_telemetry import simulate
from helpers.telemetry_files import NAME, write
from helpers.telemetry_problems import simulated_phase

from tb_bottleneck.__main__ import main

WAITING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    write(tmp_path / "tb_bottleneck" / "mine" / NAME, simulate([simulated_phase("healthy", 60.0)]))
    trace = tmp_path / "tb_bottleneck" / "mine" / "rank0_1.1.pt.trace.json"
    trace.write_text(json.dumps(drawn(WAITING, unit_us=18_000.0)))
    return tmp_path


def test_both_evidence_sources_are_printed_as_json(logdir, capsys):
    assert main(["diagnose", str(logdir), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    by_source = {report["source"]: report for report in answer["reports"]}
    telemetry, trace = by_source[NAME], by_source["rank0_1.1.pt.trace.json"]
    assert (telemetry["evidence_source"], trace["evidence_source"]) == ("telemetry", "both")
    assert telemetry["run"] == trace["run"] == "tb_bottleneck/mine"
    assert "input" in [one["regime"] for one in telemetry["disagreements"]]
    assert trace["unprofiled"]["ratio"] == pytest.approx(1.8, abs=0.1)
    assert sum(row["share"] for row in telemetry["account"]) == pytest.approx(1.0)


def test_an_event_file_can_be_named_itself(logdir, capsys):
    assert main(["diagnose", "--full", str(logdir / "tb_bottleneck" / "mine" / NAME)]) == 0
    assert "timed by the monitor, without a profiler" in " ".join(capsys.readouterr().out.split())


def test_no_sidecar_is_written_beside_telemetry(logdir, capsys):
    assert main(["diagnose", str(logdir), "--write"]) == 0
    written = [path.name for path in logdir.rglob("*.bottlenecks.json")]
    assert written == ["rank0_1.1.pt.trace.json.bottlenecks.json"]
    assert main(["diagnose", str(logdir), "--json"]) == 0, "what was written is read again"
    assert "both" in capsys.readouterr().out
