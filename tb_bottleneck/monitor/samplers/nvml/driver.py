"""The interface of NVML, implemented by the real library, and in tests by recorded results.

Functions have the names, and results the structure, of NVML's documentation: a structure is a mapping of its fields, an
array is a list. So results can be compared with the documentation, and files of results can be read without code.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tb_bottleneck.monitor.samplers.gpu_driver import GpuDevice, GpuDriver

NvmlValue = int | str | Mapping[str, int] | Sequence[Mapping[str, int]]

EVERY_LINK = 0xFFFFFFFF
"""The scope of an NVLink field that means the sum over all links."""


class NvmlDriver(GpuDriver, Protocol):
    """NVML. Each method raises DriverError."""

    def call(self, function: str, uuid: str, *arguments: int) -> NvmlValue:
        """Returns `function(device, *arguments)`."""
        ...

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        """Returns nvmlDeviceGetFieldValues for one field. Refuses 32-bit counters: their overflow is undetectable."""
        ...

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        """Returns nvmlGpmMetricsGet between the last call and this one, by metric id; empty at the first call."""
        ...
