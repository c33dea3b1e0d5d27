"""AMD SMI with a fake module: its dictionaries in our units, its "N/A" omitted, its errors converted."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from tb_bottleneck.monitor.amd import AmdSmi, queries
from tb_bottleneck.monitor.facts.device import PcieLinkFacts
from tb_bottleneck.monitor.samplers.gpu_driver import DriverError
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler
from tb_bottleneck.schema.signals import SERIES


class AmdSmiException(Exception):
    """Like the library's own exception: `err_info` begins with the name of the code."""

    def __init__(self, words: str) -> None:
        self.err_info = words


def made_up(power: object = 601) -> ModuleType:
    """An MI300X with documented shapes and values; it was not recorded on a card."""
    module = ModuleType("amdsmi")

    def link(handle: object) -> dict[str, object]:
        return {
            "pcie_static": {"max_pcie_width": 16, "max_pcie_speed": 32000, "slot_type": "OAM"},
            "pcie_metric": {"pcie_width": 16, "pcie_speed": 16000, "pcie_bandwidth": "N/A", "pcie_replay_count": 3},
        }

    def no_processes(handle: object) -> object:
        raise AmdSmiException("AMDSMI_STATUS_NO_PERM - Permission Denied")

    functions = {
        "amdsmi_init": lambda: None,
        "amdsmi_shut_down": lambda: None,
        "amdsmi_get_processor_handles": lambda: ["first"],
        "amdsmi_get_gpu_device_uuid": lambda handle: "6dff74a1-0000-1000-8000-000000000001",
        "amdsmi_get_gpu_device_bdf": lambda handle: "0000:C1:00.0",
        "amdsmi_get_gpu_asic_info": lambda handle: {"market_name": "AMD Instinct MI300X"},
        "amdsmi_get_gpu_activity": lambda handle: {"gfx_activity": 88, "umc_activity": "N/A", "mm_activity": "N/A"},
        "amdsmi_get_gpu_memory_usage": lambda handle, kind: 50_000_000_000 if kind == "vram" else 0,
        "amdsmi_get_gpu_memory_total": lambda handle, kind: 206_141_652_992 if kind == "vram" else 0,
        "amdsmi_get_power_info": lambda handle: {"current_socket_power": power, "average_socket_power": "N/A"},
        "amdsmi_get_power_cap_info": lambda handle: {"power_cap": 750_000_000, "default_power_cap": 750_000_000},
        "amdsmi_get_energy_count": lambda handle: {"energy_accumulator": 1_000_000, "counter_resolution": 15.3},
        "amdsmi_get_temp_metric": lambda handle, sensor, metric: {"hotspot": 71, "vram": 64}[sensor],
        "amdsmi_get_clock_info": lambda handle, kind: {"clk": {"gfx": 2050, "mem": 1300}[kind], "max_clk": 2100},
        "amdsmi_get_pcie_info": link,
        "amdsmi_get_gpu_process_list": no_processes,
        "AmdSmiException": AmdSmiException,
        "AmdSmiMemoryType": SimpleNamespace(VRAM="vram"),
        "AmdSmiTemperatureType": SimpleNamespace(HOTSPOT="hotspot", VRAM="vram"),
        "AmdSmiTemperatureMetric": SimpleNamespace(CURRENT="current"),
        "AmdSmiClkType": SimpleNamespace(GFX="gfx", MEM="mem"),
    }
    for name, value in functions.items():
        setattr(module, name, value)
    return module


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GpuSampler[AmdSmi]:
    monkeypatch.setitem(sys.modules, "amdsmi", made_up())
    return GpuSampler(AmdSmi(), queries(), list)


def test_an_mi300x_in_our_units(gpus: GpuSampler[AmdSmi]) -> None:
    assert {reading.name: reading.value for reading in gpus.read()} == pytest.approx(
        {
            "gpu_utilisation": 0.88,
            "memory_used": 50e9,
            "memory_total": 206_141_652_992,
            "power": 601,
            "power_limit": 750,
            "power_limit_default": 750,
            "energy_total": 15.3,
            "temperature": 71,
            "memory_temperature": 64,
            "sm_clock": 2050e6,
            "sm_clock_max": 2100e6,
            "memory_clock": 1300e6,
            "memory_clock_max": 2100e6,
            "pcie_generation": 4,
            "pcie_generation_max": 5,
            "pcie_width": 16,
            "pcie_width_max": 16,
            "pcie_replays_total": 3,
        }
    )


def test_what_it_does_not_tell_has_a_reason(gpus: GpuSampler[AmdSmi]) -> None:
    list(gpus.read())
    assert gpus.missing() == {
        "memory_utilisation": "this GPU does not report umc_activity",
        "other_processes": "the driver did not answer (AMD SMI: NO_PERM)",
    }


def test_an_older_card_tells_a_mean_power(monkeypatch: pytest.MonkeyPatch) -> None:
    module = made_up()
    module.amdsmi_get_power_info = lambda handle: {"current_socket_power": "N/A", "average_socket_power": 230}
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    readings = GpuSampler(AmdSmi(), queries(), list).read()
    assert [reading.value for reading in readings if reading.name == "power"] == [230]


def test_a_card_is_known_by_its_place_on_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", made_up())
    smi = AmdSmi()
    smi.open()
    assert [(gpu.name, gpu.bus) for gpu in smi.gpus()] == [("AMD Instinct MI300X", "0000:c1:00")]


@pytest.mark.parametrize(
    "words", ["AMDSMI_STATUS_NOT_INIT - Device not initialized", "AMDSMI_STATUS_DRIVER_NOT_LOADED"]
)
def test_a_lost_driver_is_told_apart(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    module = made_up()

    def fail(handle: object) -> object:
        raise AmdSmiException(words)

    module.amdsmi_get_gpu_activity = fail
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    smi = AmdSmi()
    smi.open()
    uuid = smi.gpus()[0].uuid
    with pytest.raises(DriverError) as refusal:
        smi.call("amdsmi_get_gpu_activity", uuid)
    assert refusal.value.lost


def test_without_the_library_all_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    gpus = GpuSampler(AmdSmi(), queries(), list)
    assert list(gpus.read()) == []
    assert "amdsmi" in gpus.missing()["power"]


def test_every_signal_is_declared() -> None:
    assert {signal for question in queries() for signal in question.signals} <= SERIES.keys()


def test_its_link_becomes_a_fact(gpus: GpuSampler[AmdSmi]) -> None:
    link = PcieLinkFacts()
    link.add_readings(list(gpus.read()))
    assert link.facts() == {"link_generation": 4, "link_width": 16, "link_generation_max": 5, "link_width_max": 16}
