"""Facts about torch's configuration, read without initialising a device."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from tb_bottleneck.monitor.facts import torch_settings


def test_what_torch_says() -> None:
    facts = torch_settings.collect()
    assert facts["matmul_precision"] == torch.get_float32_matmul_precision()
    assert facts["default_dtype"] == "float32"
    assert facts["cudnn_benchmark"] is torch.backends.cudnn.benchmark
    assert "world_size" not in facts


def test_a_fact_that_raises_is_left_out_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise RuntimeError("driver shut down")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", broken)
    facts = torch_settings.collect()
    assert "matmul_precision" not in facts
    assert "default_dtype" in facts


def test_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(uuid="8e23", total_memory=80 * 2**30, multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: properties)
    facts = torch_settings.collect()
    assert (facts["device_uuid"], facts["device_multiprocessors"], facts["device_count"]) == ("8e23", 132, 2)


def test_collecting_imports_and_begins_nothing() -> None:
    code = (
        "import sys; from tb_bottleneck.monitor.facts import torch_settings; assert torch_settings.collect() == {};"
        "assert 'torch' not in sys.modules; import torch; assert torch_settings.collect();"
        "assert not torch.cuda.is_initialized()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
