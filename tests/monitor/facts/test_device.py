"""Tests calibrations, which are stored per device and driver, and facts about the PCIe link.

Only valid calibrations are returned. Facts about the link come from recorded driver results, under load only.
"""

import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from monitor.samplers.nvml.test_queries import Clock, sampler
from monitor.samplers.replay import Replay
from monitor.test_monitor import quick
from monitor.training import Training
from monitor.written import read

from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.base.persistence import CACHE_VARIABLE
from tb_bottleneck.monitor.facts import device, process
from tb_bottleneck.monitor.facts.device import PcieLinkFacts
from tb_bottleneck.monitor.samplers.sampler import Reading


def pretended(begun: bool, hip: str | None = None) -> SimpleNamespace:
    cuda = SimpleNamespace(
        is_initialized=lambda: begun,
        device_count=lambda: 1,
        memory_reserved=lambda index: 0,
        current_device=lambda: 0,
        get_device_name=lambda index=None: "AMD Instinct MI300X",
    )
    version = SimpleNamespace(hip=hip)
    return SimpleNamespace(cuda=cuda, version=version, __version__="2.13", get_num_threads=lambda: 8)


def test_a_run_finds_the_calibration_of_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrations.save("AMD Instinct MI300X", "ROCm 6.4", {"bf16_flops": 6e14})
    monkeypatch.setitem(sys.modules, "torch", pretended(True, "6.4"))
    assert device.calibration() == {"bf16_flops": 6e14}


def test_as_long_as_no_gpu_is_in_use_the_device_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pretended(False)
    calibrations.save(*device.of_cpu(torch), {"fp32_flops": 1e11})
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert device.calibration() == {"fp32_flops": 1e11}
    torch.get_num_threads = lambda: 4
    assert device.calibration() is None, "with fewer threads it reaches less"


def test_without_torch_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert device.calibration() is None
    assert "torch" not in sys.modules


def test_a_system_that_names_no_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(device, "cpu_name", nowhere)
    assert device.of_cpu(pretended(False)) == ("CPU", "torch 2.13, 8 threads")


def test_without_nvml_the_driver_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    device.nvidia_driver.cache_clear()
    assert device.nvidia_driver() == "unknown"
    device.nvidia_driver.cache_clear()


def test_the_runs_context_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "calibration", lambda: {"bf16_flops": 6e14})
    assert process.collect()["calibration"] == {"bf16_flops": 6e14}


H200 = ("NVIDIA H200", "570.86.15")
FIGURES = {"bf16_flops": 7.9e14, "launch_ns": 4100.0}


def test_what_is_kept_is_given_back(cache_directory: Path) -> None:
    kept = calibrations.save(*H200, FIGURES)
    assert kept is not None
    assert kept.parent == cache_directory / "calibrations"
    assert calibrations.load(*H200) == FIGURES
    if os.name == "posix":
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_another_driver_is_another_calibration() -> None:
    calibrations.save(*H200, FIGURES)
    assert calibrations.load("NVIDIA H200", "580.1") is None
    assert calibrations.load("NVIDIA H100", "570.86.15") is None


def test_the_newer_one_takes_the_place_of_the_older() -> None:
    calibrations.save(*H200, FIGURES)
    kept = calibrations.save(*H200, {"bf16_flops": 1e15})
    assert calibrations.load(*H200) == {"bf16_flops": 1e15}
    assert kept is not None
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        json.dumps({"schema": 2, "device": H200[0], "driver": H200[1], "measured": FIGURES}),
        json.dumps({"schema": 1, "device": "another", "driver": H200[1], "measured": FIGURES}),
        json.dumps({"schema": 1, "device": H200[0], "driver": H200[1], "measured": 7}),
        json.dumps({"schema": 1, "device": H200[0], "driver": H200[1], "measured": {"bf16_flops": "fast"}}),
    ],
)
def test_a_file_that_is_none_of_ours_is_not_used(content: str) -> None:
    kept = calibrations.save(*H200, FIGURES)
    assert kept is not None
    kept.write_text(content)
    assert calibrations.load(*H200) is None


def test_figures_that_are_none_are_left_out() -> None:
    kept = calibrations.save(*H200, FIGURES)
    assert kept is not None
    bad = {"bf16_flops": -1, "tf32_flops": float("inf"), "fp32_flops": True, "something": 5, "fp16_flops": 2}
    kept.write_text(json.dumps({"schema": 1, "device": H200[0], "driver": H200[1], "measured": bad}))
    assert calibrations.load(*H200) == {"fp16_flops": 2.0}


def test_where_the_user_keeps_no_cache_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    assert calibrations.save(*H200, FIGURES) is None
    assert calibrations.load(*H200) is None


def test_a_directory_that_cannot_be_written_is_said(cache_directory: Path) -> None:
    (cache_directory / "calibrations").write_text("in the way")
    with pytest.raises(OSError):  # noqa: PT011  (which one depends on the system)
        calibrations.save(*H200, FIGURES)


GPU = "GPU-11111111-1111-1111-1111-111111111111"
WIDE = {
    "link_generation": 5,
    "link_width": 16,
    "link_generation_max": 5,
    "link_generation_gpu_max": 5,
    "link_width_max": 16,
}


def link_facts(*moments: dict[str, float]) -> dict[str, Any]:
    link = PcieLinkFacts()
    for moment in moments:
        link.add_readings([Reading(name, value, GPU) for name, value in moment.items()])
    return dict(link.facts())


def test_a_loaded_h200_tells_its_link() -> None:
    link = PcieLinkFacts()
    link.add_readings(list(sampler(Replay("h200.json"), Clock()).read()))
    assert link.facts() == WIDE
    assert all(type(value) is int for value in link.facts().values()), "a comparison takes whole numbers"


def test_an_idle_link_that_slowed_down_to_save_power_is_not_believed() -> None:
    idle = {"gpu_utilisation": 0.0, "pcie_generation": 1.0, "pcie_width": 16.0, "pcie_generation_max": 4.0}
    assert link_facts(idle) == {"link_generation_max": 4}
    loaded = {"gpu_utilisation": 0.9, "pcie_generation": 3.0, "pcie_width": 8.0}
    assert link_facts(idle, loaded, idle) == {"link_generation": 3, "link_width": 8, "link_generation_max": 4}


def test_without_utilisation_it_is_not_known_whether_there_was_load() -> None:
    assert link_facts({"pcie_generation": 4.0, "pcie_width": 16.0}) == {}


def test_several_gpus_have_no_link_facts() -> None:
    link = PcieLinkFacts()
    for gpu, width in (("GPU-a", 16.0), ("GPU-b", 8.0)):
        link.add_readings([Reading("gpu_utilisation", 1.0, gpu), Reading("pcie_width", width, gpu)])
    assert link.facts() == {}


def test_a_run_writes_it_into_its_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same facts are in its traces, where a comparison reads `link_generation` and `link_width`."""
    monkeypatch.setattr("tb_bottleneck.monitor.session._samplers", lambda: [sampler(Replay("h200.json"), Clock())])
    with quick(tmp_path) as monitor:
        Training().run()
        assert monitor._session is not None
        while not monitor._session._facts.link.facts():
            Training().run()
        assert WIDE.items() <= monitor._session._facts.collect().items()
    assert WIDE.items() <= read(tmp_path).facts.items()
