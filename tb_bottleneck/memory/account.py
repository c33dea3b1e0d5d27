"""The memory account: the bytes at the peak by category. They sum to the memory in use."""

from collections.abc import Mapping

from tb_bottleneck.base.record import Record
from tb_bottleneck.memory.categories import CATEGORIES, Category


class MemoryAccount(Record, frozen=True):
    """The state of one device's memory at its peak.

    `bytes_of` has the bytes by category. `recorded` is the sum of the blocks and totals that the source shows;
    `estimated` bytes are in the account too, but are from before the recording of a CPU, whose totals leave them out.
    `capacity` is the size of the device's memory, None if unknown. `source` is trace, snapshot or telemetry.
    """

    bytes_of: Mapping[Category, int]
    source: str
    kind: str
    """cuda, rocm, cpu or another device."""

    allocated: int
    """Bytes in tensors at the peak, as the allocator counts them."""

    reserved: int
    """Bytes that the allocator has from the driver at the peak; on the CPU, the bytes in tensors."""

    estimated: int = 0
    capacity: int | None = None

    @property
    def peak(self) -> int:
        """Bytes in use at the peak: the sum of the categories."""
        return sum(self.bytes_of.values())

    @property
    def headroom(self) -> int | None:
        """Bytes that were still free at the peak; None if the capacity is unknown."""
        return None if self.capacity is None else max(self.capacity - self.peak, 0)

    def share(self, category: Category) -> float:
        """Returns the share of a category at the peak."""
        return self.bytes_of.get(category, 0) / max(self.peak, 1)

    @property
    def rows(self) -> list[tuple[Category, int]]:
        """The categories that have bytes, in the order of CATEGORIES."""
        return [(category, self.bytes_of[category]) for category in CATEGORIES if self.bytes_of.get(category)]
