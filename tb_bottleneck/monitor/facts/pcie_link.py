"""Facts about the PCIe link between host and GPU: its generation and width under load, and their maxima."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.schema.signals import HOST

LOADED_UTILISATION = 0.20
"""Smallest GPU utilisation for a valid reading: an idle link slows down to save power."""

_UNDER_LOAD = {"pcie_generation": "link_generation", "pcie_width": "link_width"}
_MAXIMA = {
    "pcie_generation_max": "link_generation_max",
    "pcie_generation_gpu_max": "link_generation_gpu_max",
    "pcie_width_max": "link_width_max",
}


class PcieLinkFacts:
    """Collects the facts from GPU readings. `add_readings` is for the monitor's thread, `facts` for any."""

    def __init__(self) -> None:
        self._loaded: dict[str, bool] = {}
        self._by_device: dict[str, dict[str, int]] = defaultdict(dict)

    def add_readings(self, readings: Iterable[Reading]) -> None:
        """Processes simultaneous readings, in which the GPU's utilisation precedes its link."""
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
        """Returns `link_generation` and `link_width`, and with `_max` the limits of GPU and slot, as whole numbers.

        `link_generation_gpu_max` is the limit of the GPU alone.

        Each is the highest reading. Empty if the process uses several GPUs: their links may differ.
        """
        devices = list(self._by_device.values())
        return dict(devices[0]) if len(devices) == 1 else {}

    def _keep(self, reading: Reading, fact: str) -> None:
        facts = self._by_device[reading.device]
        if reading.value > facts.get(fact, 0):
            facts[fact] = round(reading.value)
