"""The seam to NVML: one protocol, behind which there is the real library, or in tests readings from a file.

Functions are named, and their answers are shaped, as NVML's own documentation has them: a structure is a mapping of its
fields, an array a list. So a reading can be held against the documentation, and a file of readings read without code.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tb_bottleneck.monitor.samplers.gpu_driver import GpuDevice, GpuDriver

NvmlValue = int | str | Mapping[str, int] | Sequence[Mapping[str, int]]

EVERY_LINK = 0xFFFFFFFF
"""As the scope of an NVLink field: the sum over all links."""


class NvmlDriver(GpuDriver, Protocol):
    """NVML. Each method raises DriverError."""

    def call(self, function: str, uuid: str, *arguments: int) -> NvmlValue:
        """What `function(device, *arguments)` returns."""
        ...

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        """nvmlDeviceGetFieldValues for one field. A counter of 32 bits is refused: it wraps unseen."""
        ...

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        """nvmlGpmMetricsGet between the call before and this one, by metric id; empty at the first call."""
        ...
