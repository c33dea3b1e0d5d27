"""The recorder, end to end on one pair, and its handling of existing recordings."""

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from demo import __main__ as command
from demo import index, record
from demo.pairs import PAIRS, RECORDED
from tb_bottleneck.monitor.capture.trace_capture import MAX_STEPS, MIN_STEPS

torch_is_here = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="recording needs torch")


def trace_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    (path,) = folder.glob("*.json.gz")
    return path, json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.nightly
@torch_is_here
def test_one_pair_from_the_training_to_the_published_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["record", "checkpointing", "--out", str(tmp_path), "--steps", "3", "--repeats", "1"]
    arguments += ["--monitored", "1"]
    assert command.main(arguments) == 0

    path, slow = trace_of(tmp_path / "checkpointing" / "slow")
    assert path.name.startswith("demo.")
    assert slow["tb_bottleneck"]["context"]["torch_threads"] >= 1
    assert "host_name" not in slow
    steps = [event for event in slow["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    saves = [event for event in slow["traceEvents"] if is_save(event)]
    with_stacks = slow["tb_bottleneck_steps_with_stacks"]
    assert MIN_STEPS <= with_stacks <= MAX_STEPS  # other load slows the steps: the window is shortened
    assert len(steps) > with_stacks
    assert with_stacks // 3 <= len(saves) <= (with_stacks + 2) // 3, "one in every third step"
    (telemetry,) = (path.parent / "tb_bottleneck").glob("*/events.out.tfevents.*")
    assert telemetry.stat().st_size > 1000
    _, fixed = trace_of(tmp_path / "checkpointing" / "fixed")
    assert not any(is_save(event) for event in fixed["traceEvents"])

    pair = index.read_index(tmp_path)["pairs"]["checkpointing"]
    assert pair["slow"]["trace"] == path.name
    assert pair["fixed"]["unprofiled"]["ns_per_step"] > 0
    assert pair["slow_over_fixed"] > 0
    assert "without a profiler" in capsys.readouterr().err

    monkeypatch.setattr(record, "run_variant", lambda *_: pytest.fail("it recorded what is recorded already"))
    assert command.main(arguments) == 0
    assert path.exists()


def is_save(event: dict[str, Any]) -> bool:
    name = str(event["name"])
    return name.startswith("torch/serialization.py(") and name.endswith("): save")


@torch_is_here
def test_a_training_that_fails_leaves_the_older_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = tmp_path / "checkpointing" / "slow" / "demo.1.pt.trace.json.gz"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"older")
    monkeypatch.setattr(record, "PYTHON", "false")  # the command of that name: it fails, and says nothing
    assert command.main(["record", "checkpointing", "--out", str(tmp_path), "--again"]) == 1
    assert older.read_bytes() == b"older"


def test_a_new_recording_takes_the_place_of_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up(trace: str, ns: int) -> None:
        def run_variant(_name: str, _variant: str, folder: Path, *_: float) -> list[dict[str, Any]]:
            (folder / trace).write_bytes(gzip.compress(b'{"traceEvents": []}'))
            last = {"trace": trace, "context": {"cores": 2, "omp_num_threads": 1}}
            fast, lucky, slow = [ns, ns, 4 * ns], [ns, ns, ns], [9 * ns, 9 * ns, 9 * ns]
            return [*({"steps_ns": steps} for steps in (fast, lucky, slow)), last]

        monkeypatch.setattr(record, "run_variant", run_variant)

    made_up("demo.1.pt.trace.json.gz", 100)
    record.record(tmp_path, "checkpointing", "slow", 3, 1)
    record.record(tmp_path, "checkpointing", "fixed", 3, 1)
    made_up("demo.2.pt.trace.json.gz", 150)
    record.record(tmp_path, "checkpointing", "slow", 3, 1)

    assert [path.name for path in (tmp_path / "checkpointing" / "slow").iterdir()] == ["demo.2.pt.trace.json.gz"]
    pair = index.read_index(tmp_path)["pairs"]["checkpointing"]
    assert pair["slow"]["unprofiled"] == {
        "steps": 3,
        "ns_per_step": 300,
        "step_ns_median": 150,
        "ns_per_step_of_each_training": [300, 150, 1350],
    }
    assert pair["slow"]["cores"] == 2
    assert pair["slow_over_fixed"] == 1.5
    assert index.exists(tmp_path, "checkpointing", "slow")
    (tmp_path / "checkpointing" / "slow" / "demo.2.pt.trace.json.gz").unlink()
    assert not index.exists(tmp_path, "checkpointing", "slow")


def test_without_torch_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert command.main(["record"]) == 2
    assert "pip install '.[demo]'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nonsense"], ["--steps", "2"], ["--repeats", "0"], ["--steps", "x"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["record", *arguments])
    assert ended.value.code == 2
    assert "usage: python -m demo record" in capsys.readouterr().err


@pytest.mark.parametrize("name", index.read_index(RECORDED)["pairs"])
def test_what_is_recorded_is_published_with_the_truth(name: str) -> None:
    pair = index.read_index(RECORDED)["pairs"][name]
    assert pair.get("slow_over_fixed", 0) > 0 or PAIRS[name].sweep
    for variant in PAIRS[name].variants:
        path, trace = trace_of(RECORDED / name / variant)
        assert path.name == pair[variant]["trace"]
        assert path.stat().st_size < 2_000_000
        facts = trace.get("tb_bottleneck", trace.get("tb_bottleneck_late"))
        assert facts["context"]["cores"] == pair[variant]["cores"]
        assert trace["tb_bottleneck_lines"]["calls"] > 0
        assert "host_name" not in trace
