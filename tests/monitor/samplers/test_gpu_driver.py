"""The GPUs of this process are found by torch's identifiers, independent of the order of either side."""

import sys
from types import SimpleNamespace

import pytest

from tb_bottleneck.monitor.samplers.gpu_driver import GpuDevice, TorchGpu, UnknownGpus, by_bus, by_uuid, torch_gpus

A, B, C = (GpuDevice(f"GPU-{c * 8}-0000", f"GPU-{c * 8}-0000", "NVIDIA H200", f"0000:{c}0:00") for c in "abc")
SLICE = GpuDevice("MIG-dddddddd-0000", "GPU-eeeeeeee-0000", "NVIDIA A100", "0000:e0:00")


def torch(*gpus: tuple[GpuDevice, bool]) -> list[TorchGpu]:
    return [TorchGpu(gpu.uuid.partition("-")[2], gpu.bus, used) for gpu, used in gpus]


def names(gpus: list[GpuDevice]) -> list[str]:
    return [gpu.uuid for gpu in gpus]


def test_torch_counts_from_another_end() -> None:
    seen = torch((C, True), (A, False))
    assert by_uuid([A, B, C], lambda: seen, {"CUDA_VISIBLE_DEVICES": "2,0"}) == [C]


def test_a_rank_that_sees_all_gpus_uses_the_ones_it_has_memory_on() -> None:
    seen = torch((A, False), (B, True), (C, True))
    assert by_uuid([A, B, C], lambda: seen, {}) == [B, C]


def test_several_gpus_and_none_in_use_yet_is_not_guessed() -> None:
    seen = torch((A, False), (B, False))
    with pytest.raises(UnknownGpus, match="none yet"):
        by_uuid([A, B], lambda: seen, {})


def test_the_only_visible_gpu_is_ours_before_it_holds_memory() -> None:
    seen = torch((B, False))
    assert by_uuid([A, B], lambda: seen, {}) == [B]


def test_an_instance_of_a_partitioned_gpu_is_found_by_its_own_uuid() -> None:
    seen = torch((SLICE, True))
    assert by_uuid([A, SLICE], lambda: seen, {}) == [SLICE]


def test_before_torch_begins_an_index_in_the_environment_tells_nothing() -> None:
    with pytest.raises(UnknownGpus, match="torch has not used any"):
        by_uuid([A, B], lambda: None, {"CUDA_VISIBLE_DEVICES": "1"})


def test_before_torch_begins_a_uuid_in_the_environment_tells_all() -> None:
    assert by_uuid([A, B, C], lambda: None, {"CUDA_VISIBLE_DEVICES": "GPU-cccc, GPU-aaaa"}) == [A, C]


def test_the_machines_only_gpu_is_ours() -> None:
    assert by_uuid([A], lambda: None, {}) == [A]
    assert by_bus([A], lambda: None) == [A]


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_a_hidden_gpu_is_not_ours(hidden: str) -> None:
    with pytest.raises(UnknownGpus, match="hides every GPU"):
        by_uuid([A], lambda: None, {"CUDA_VISIBLE_DEVICES": hidden})


def test_a_gpu_that_the_driver_does_not_list_is_said() -> None:
    seen = torch((C, True))
    with pytest.raises(UnknownGpus, match="lists no GPU with"):
        by_uuid([A], lambda: seen, {})


def test_amds_are_found_by_their_place_on_the_bus() -> None:
    seen = torch((B, True), (A, False))
    assert by_bus([A, B], lambda: seen) == [B]


def pretended(**properties: object) -> SimpleNamespace:
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda index: SimpleNamespace(**properties),
        memory_reserved=lambda index: 1 << 20,
    )
    return SimpleNamespace(cuda=cuda)


def test_what_torch_tells_of_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {"uuid": "AAAAAAAA-0000", "pci_bus_id": 0xC1, "pci_device_id": 0, "pci_domain_id": 1}
    monkeypatch.setitem(sys.modules, "torch", pretended(**properties))
    assert torch_gpus() == [TorchGpu("aaaaaaaa-0000", "0001:c1:00", True)]


def test_an_older_torch_tells_neither_uuid_nor_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", pretended())
    assert torch_gpus() == [TorchGpu("", "", True)]
    with pytest.raises(UnknownGpus, match="does not give their UUIDs"):
        by_uuid([A, B], torch_gpus, {})


def test_torch_is_never_made_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False)))
    assert torch_gpus() is None
    monkeypatch.delitem(sys.modules, "torch")
    assert torch_gpus() is None
    assert "torch" not in sys.modules
