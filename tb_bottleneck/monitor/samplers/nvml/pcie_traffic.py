"""Traffic on the PCIe link, from the driver's byte counters, or from its slow measurement if it has none.

Newer drivers count bytes (fields 197 and 198). nvmlDeviceGetPcieThroughput blocks for 20 ms per direction, so it is
called rarely; its unit is KB/s.
"""

import time
from collections.abc import Mapping

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlDriver
from tb_bottleneck.monitor.samplers.nvml.parse import as_number
from tb_bottleneck.monitor.samplers.rates import Clock, Rates

SLOW_S = 10.0
_FIELDS = {"pcie_sent": 197, "pcie_received": 198}
_COUNTERS = {"pcie_sent": 0, "pcie_received": 1}
_KB = 1000.0
_EARLY = 0.1


class PcieTraffic:
    """Bytes per second from and to each GPU."""

    signals = ("pcie_sent", "pcie_received")
    every_s = 1.0

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._rates: dict[str, Rates] = {}
        self._no_counters: set[str] = set()
        self._slow_at: dict[str, float] = {}

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns nothing at the first call with counters. Raises DriverError."""
        if gpu.uuid not in self._no_counters:
            try:
                counted = {signal: driver.field(gpu.board, field) for signal, field in _FIELDS.items()}
            except DriverError as error:
                if not error.lasting:
                    raise
                self._no_counters.add(gpu.uuid)
            else:
                return self._rates.setdefault(gpu.uuid, Rates(self._clock)).per_second(counted)
        now = self._clock()
        if now < self._slow_at.get(gpu.uuid, now):
            return {}
        self._slow_at[gpu.uuid] = now + SLOW_S * (1 - _EARLY)
        return {
            signal: as_number(driver.call("nvmlDeviceGetPcieThroughput", gpu.board, counter)) * _KB
            for signal, counter in _COUNTERS.items()
        }
