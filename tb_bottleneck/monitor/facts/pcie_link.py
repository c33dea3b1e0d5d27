"""The link between host and GPU as facts of the run: what it ran at under load, and what it could run at."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.schema.signals import HOST

LOADED = 0.20
"""An idle link slows down to save power, so what it runs at is believed with this much utilisation, and no less."""

_UNDER_LOAD = {"pcie_generation": "link_generation", "pcie_width": "link_width"}
_AT_MOST = {"pcie_generation_max": "link_generation_max", "pcie_width_max": "link_width_max"}


class PcieLinkFacts:
    """Listens to the readings of GPUs. It is told on the monitor's thread and may be asked on any."""

    def __init__(self) -> None:
        self._loaded: dict[str, bool] = {}
        self._found: dict[str, dict[str, int]] = defaultdict(dict)

    def hear(self, readings: Iterable[Reading]) -> None:
        """Takes what it needs from the readings of one moment; the driver gives utilisation before the link."""
        for reading in readings:
            if reading.device == HOST:
                continue
            if reading.name == "gpu_utilisation":
                self._loaded[reading.device] = reading.value >= LOADED
            elif reading.name in _AT_MOST:
                self._keep(reading, _AT_MOST[reading.name])
            elif reading.name in _UNDER_LOAD and self._loaded.get(reading.device, False):
                self._keep(reading, _UNDER_LOAD[reading.name])

    def facts(self) -> Mapping[str, object]:
        """`link_generation` and `link_width`, and with `_max` what GPU and slot allow: whole numbers, each the highest
        that was read. Empty where the process uses several GPUs: their links may differ."""
        found = list(self._found.values())
        return dict(found[0]) if len(found) == 1 else {}

    def _keep(self, reading: Reading, fact: str) -> None:
        known = self._found[reading.device]
        if reading.value > known.get(fact, 0):
            known[fact] = round(reading.value)
