"""Facts about the device: its name and driver, the results of its calibration, and its PCIe link."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.facts.cpu import cpu_name
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.schema.signals import HOST


def of_cpu(torch: Any) -> tuple[str, str]:
    """Returns (name, driver) of the CPU. `driver` has torch's version and number of threads, because both determine
    the speed of the CPU."""
    try:
        name = cpu_name()
    except OSError:  # only Linux has /proc/cpuinfo
        name = None
    return name or "CPU", f"torch {torch.__version__}, {torch.get_num_threads()} threads"


def of_gpu(torch: Any, index: int | None = None) -> tuple[str, str]:
    """Returns (name, driver) of the initialised GPU with this index; by default, of the GPU that this process uses."""
    name = str(torch.cuda.get_device_name(own_gpu(torch) if index is None else index))
    return name, f"ROCm {torch.version.hip}" if torch.version.hip else nvidia_driver()


@lru_cache(maxsize=1)
def nvidia_driver() -> str:
    """Returns the version of NVIDIA's driver, such as "570.86.15"; "unknown" if NVML cannot be used."""
    from tb_bottleneck.monitor.nvml.binding import Nvml
    from tb_bottleneck.monitor.samplers.gpu_driver import DriverError

    nvml = Nvml()
    try:
        nvml.open()
        return nvml.driver_version()
    except DriverError:
        return "unknown"
    finally:
        nvml.close()


def calibration() -> dict[str, float] | None:
    """Returns the results of `tb-bottleneck doctor` for the device that this process uses: a GPU if CUDA or ROCm is
    initialised, otherwise the CPU. None if there are no results, or torch is not imported."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    return calibrations.load(*(of_gpu(torch) if torch.cuda.is_initialized() else of_cpu(torch)))


LOADED_UTILISATION = 0.20
"""Smallest GPU utilisation at which a reading of the PCIe link counts: an idle link slows down to save power."""

_UNDER_LOAD = {"pcie_generation": "link_generation", "pcie_width": "link_width"}
_MAXIMA = {
    "pcie_generation_max": "link_generation_max",
    "pcie_generation_gpu_max": "link_generation_gpu_max",
    "pcie_width_max": "link_width_max",
}


class PcieLinkFacts:
    """Collects the facts about the PCIe link between host and GPU from GPU readings.

    The facts are the link's generation and width under load, and the highest generation and width that GPU and slot
    allow. `add_readings` is for the monitor's thread, `facts` for any thread.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, bool] = {}
        self._by_device: dict[str, dict[str, int]] = defaultdict(dict)

    def add_readings(self, readings: Iterable[Reading]) -> None:
        """Processes readings that were taken at the same time. For each GPU, its utilisation must come before the
        readings of its link."""
        for reading in readings:
            if reading.device == HOST:
                continue
            if reading.name == "gpu_utilisation":
                self._loaded[reading.device] = reading.value >= LOADED_UTILISATION
            elif reading.name in _MAXIMA:
                self._keep(reading, _MAXIMA[reading.name])
            elif reading.name in _UNDER_LOAD and self._loaded.get(reading.device, False):
                self._keep(reading, _UNDER_LOAD[reading.name])

    def facts(self) -> Mapping[str, object]:
        """Returns the highest readings: `link_generation` and `link_width` under load, and their limits, whose names
        have the suffix `_max`.

        `link_generation_gpu_max` is the limit of the GPU alone. The other limits are those of GPU and slot together.

        The result is empty without readings, or if the process uses several GPUs, because their links may differ."""
        devices = list(self._by_device.values())
        return dict(devices[0]) if len(devices) == 1 else {}

    def _keep(self, reading: Reading, fact: str) -> None:
        facts = self._by_device[reading.device]
        if reading.value > facts.get(fact, 0):
            facts[fact] = round(reading.value)
