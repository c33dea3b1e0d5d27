"""The key of a calibration, and how a run finds the calibration of its device."""

import sys
from types import SimpleNamespace

import pytest

from tb_bottleneck.monitor.facts import device, process


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
    device.save("AMD Instinct MI300X", "ROCm 6.4", {"bf16_flops": 6e14})
    monkeypatch.setitem(sys.modules, "torch", pretended(True, "6.4"))
    assert device.calibration() == {"bf16_flops": 6e14}


def test_as_long_as_no_gpu_is_in_use_the_device_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pretended(False)
    device.save(*device.of_cpu(torch), {"fp32_flops": 1e11})
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
