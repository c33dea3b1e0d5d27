"""The demo's simulated recordings: marked as simulated, made by the simulators in tests/, and judged as planted."""

import gzip
import json
from pathlib import Path

import pytest
import simulated_demo

from demo.simulated import SIMULATED, SITUATIONS
from tb_bottleneck.__main__ import main
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.knowledge.gpus import SIMULATED_SUFFIX, gpu_named

JOB = "slow_rank_of_eight"
ALONE = sorted(set(SITUATIONS) - {JOB})


def only_trace(name: str, variant: str) -> Path:
    (path,) = (SIMULATED / name / variant).glob("*.pt.trace.json.gz")
    return path


def test_the_recordings_are_those_that_the_simulators_write() -> None:
    written = dict(simulated_demo.recordings())
    assert written.keys() == set(SIMULATED.rglob("*.json.gz"))
    for path, content in written.items():
        # Not byte by byte: another zlib may compress differently.
        assert json.loads(gzip.decompress(path.read_bytes())) == json.loads(gzip.decompress(content)), path


def test_all_of_them_are_small() -> None:
    assert sum(path.stat().st_size for path in SIMULATED.rglob("*.json.gz")) < 2_500_000


@pytest.mark.parametrize("name", ALONE)
def test_a_problem_is_named_with_its_gain_and_its_fix_removes_it(name: str) -> None:
    slow, fixed = (diagnose(str(only_trace(name, variant))) for variant in ("slow", "fixed"))
    assert slow.device.name.endswith(SIMULATED_SUFFIX)
    assert slow.findings[0].cause == name
    gain, measured = slow.findings[0].speedup, slow.window.step_ns.mean / fixed.window.step_ns.mean
    assert gain.basis == "replay"
    assert gain.low <= measured <= gain.high
    assert name not in [finding.cause for finding in fixed.findings]


def test_the_straggler_of_the_job_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(SIMULATED / JOB / "slow"), "--json", "--no-cache"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert [culprit["ranks"] for culprit in job["culprits"]] == [[simulated_demo.STRAGGLER]]
    assert job["culprits"][0]["cause"] == "throttled_rank"


def test_a_simulated_device_has_the_figures_of_the_real_one() -> None:
    assert gpu_named("NVIDIA A100-SXM4-80GB" + SIMULATED_SUFFIX) == gpu_named("NVIDIA A100-SXM4-80GB")
