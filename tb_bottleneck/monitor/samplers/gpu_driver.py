"""The common interface of GPU drivers: GPUs, errors, and repeated queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU, or an instance of a partitioned GPU, as the driver lists it."""

    uuid: str
    """As the driver writes it; for NVIDIA "GPU-…" or "MIG-…"."""
    board: str
    """The uuid of the whole GPU; it differs from `uuid` only for an instance."""
    name: str
    bus: str
    """Address on the PCI bus, "0000:c1:00", lower case; empty if unknown."""

    @property
    def is_instance(self) -> bool:
        """True for a part of a partitioned GPU."""
        return self.uuid != self.board


class DriverError(Exception):
    """A query of a driver failed; str() is one sentence with the reason.

    `lasting`: the query will never succeed. `lost`: no query succeeds until the driver is opened again.
    """

    def __init__(self, because: str, *, lasting: bool = False, lost: bool = False) -> None:
        super().__init__(because)
        self.lasting = lasting
        self.lost = lost


class GpuDriver(Protocol):
    """A GPU driver. Every method except `close` raises DriverError."""

    def open(self) -> None:
        """Loads the vendor's library."""
        ...

    def gpus(self) -> Sequence[GpuDevice]:
        """Returns every GPU and instance that is visible to this process."""
        ...

    def close(self) -> None:
        """Releases the library. May be called twice."""
        ...


D_contra = TypeVar("D_contra", contravariant=True)


class GpuQuery(Protocol[D_contra]):
    """A repeated query of a driver about one GPU."""

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals in the result, names of `schema.signals.SERIES`."""
        ...

    @property
    def every_s(self) -> float:
        """The minimum interval between two calls."""
        ...

    def read(self, driver: D_contra, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns values by signal, in the signal's unit. A signal may be missing. Raises DriverError."""
        ...
