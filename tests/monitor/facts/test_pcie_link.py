"""Facts about the PCIe link from recorded driver results: only readings under load count."""

from pathlib import Path
from typing import Any

import pytest
from monitor.samplers.nvml.test_queries import Clock, sampler
from monitor.samplers.replay import Replay
from monitor.test_monitor import quick
from monitor.training import Training
from monitor.written import read

from tb_bottleneck.monitor.facts.device import PcieLinkFacts
from tb_bottleneck.monitor.samplers.sampler import Reading

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
        while not monitor._session._link.facts():
            Training().run()
        assert WIDE.items() <= monitor._session._facts().items()
    assert WIDE.items() <= read(tmp_path).facts.items()
