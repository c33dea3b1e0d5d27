"""A recording replays the same results, without ids of the recording machine."""

import json
from pathlib import Path

import pytest
from monitor.samplers import replay
from monitor.samplers.record import Recorder
from monitor.samplers.replay import Replay

from tb_bottleneck.monitor.nvml.queries import queries
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler


def test_a_recording_of_a_replay_is_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Replay("h200.json")
    recorder, now = Recorder(source), 0.0
    first = []
    gpus = GpuSampler(recorder, queries(), lambda gpus: gpus, lambda: now)
    for source.moment in (0, 1):
        recorder.begin_moment()
        first.append({reading.name: reading.value for reading in gpus.read()})
        now += 5.0
    recorded = recorder.recording("recorded in a test")
    text = json.dumps(recorded)
    assert "11111111-1111" not in text
    assert "4242" not in text
    (tmp_path / "again.json").write_text(text)
    monkeypatch.setattr(replay, "RECORDINGS", tmp_path)
    again, now = Replay("again.json"), 0.0
    gpus = GpuSampler(again, queries(), lambda gpus: gpus, lambda: now)
    for again.moment in (0, 1):
        found = {reading.name: reading.value for reading in gpus.read()}
        # Rates of the link are by the real clock, which is not of the recording.
        assert {k: v for k, v in found.items() if not k.startswith("pcie_")} == {
            k: v for k, v in first[again.moment].items() if not k.startswith("pcie_")
        }
        now += 5.0
    assert set(recorder.microseconds) >= {"nvmlDeviceGetPowerUsage", "field 82 0", "performance"}
