"""All samplers together, on the machine of the tests."""

import importlib
import sys
import time
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest

from tb_bottleneck.monitor import samplers as package
from tb_bottleneck.monitor.samplers import all_samplers
from tb_bottleneck.monitor.samplers.cpu import Cores, Pressure, Quota, RunQueue, UsableCores
from tb_bottleneck.monitor.samplers.host_memory import HostMemory
from tb_bottleneck.monitor.samplers.io import Disks, Network
from tb_bottleneck.monitor.samplers.loader_workers import Workers
from tb_bottleneck.monitor.samplers.processes import OwnProcess, PsutilProcessTree
from tb_bottleneck.monitor.samplers.sampler import Reading, Sampler
from tb_bottleneck.schema.signals import HOST, SERIES


@pytest.fixture
def samplers():
    made = all_samplers()
    yield made
    for sampler in made:
        sampler.close()
        sampler.close()


def test_every_sampler_is_used(samplers: list[Sampler]) -> None:
    """A class with the members of a sampler is one. Those of GPUs are chosen by torch's build."""
    modules = [importlib.import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    members = {"every_s", "read", "missing", "close"}
    classes = {value for module in modules for value in vars(module).values() if members <= set(dir(value))}
    assert {cls.__name__ for cls in classes} - {"GpuSampler"} == {type(sampler).__name__ for sampler in samplers} - {
        "GpuSampler"
    }


def test_every_reading_is_a_declared_signal_and_none_is_given_twice(samplers: list[Sampler]) -> None:
    readings: list[Reading] = []
    for _ in range(2):
        readings = [reading for sampler in samplers for reading in sampler.read()]
    names = [(reading.name, reading.device) for reading in readings]
    assert {name for name, _ in names} <= SERIES.keys()
    assert len(names) == len(set(names))
    assert any(device == HOST for _, device in names)


def test_each_signal_of_the_samplers_is_read_or_missing_with_a_sentence(samplers: list[Sampler]) -> None:
    missing = {name: because for sampler in samplers for name, because in sampler.missing().items()}
    assert missing.keys() <= SERIES.keys()
    assert all(because and "\n" not in because for because in missing.values())


def test_shares_lie_between_nothing_and_all(samplers: list[Sampler]) -> None:
    for _ in range(3):
        for reading in (reading for sampler in samplers for reading in sampler.read()):
            assert reading.value >= 0, reading
            if SERIES[reading.name].unit == "share":
                assert reading.value <= 1, reading


def test_a_system_without_proc_and_sys_gives_what_psutil_gives(tmp_path: Path) -> None:
    """Like macOS and Windows, as far as these samplers are concerned."""
    made = [
        Cores(),
        UsableCores(tmp_path),
        Pressure(tmp_path),
        RunQueue(tmp_path),
        Quota(tmp_path),
        OwnProcess(),
        Workers(PsutilProcessTree()),
        Disks(tmp_path),
        Network(tmp_path),
        HostMemory(),
    ]
    given: set[str] = set()
    for _ in range(2):
        time.sleep(0.05)  # psutil's counters move in hundredths of a second
        given |= {reading.name for sampler in made for reading in sampler.read()}
    missing = {name for sampler in made for name in sampler.missing()}
    assert {"cpu_busy_cores", "cpu_usable_cores", "process_cores", "worker_count", "host_memory_used"} <= given
    assert {"run_queue", "cpu_pressure", "quota_throttled_total"} <= missing
    assert not given & missing


def test_a_torch_for_rocm_asks_amd(monkeypatch: pytest.MonkeyPatch) -> None:
    version = SimpleNamespace(hip="6.4")
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(version=version, cuda=cuda))
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert "amdsmi" in all_samplers()[-1].missing()["power"]
