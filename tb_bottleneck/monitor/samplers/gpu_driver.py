"""What samplers of GPUs share: a GPU, a driver that may refuse, a question that is put to it again and again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU, or an instance of one that is partitioned, as its driver lists it."""

    uuid: str
    """As the driver writes it: "GPU-…" or "MIG-…" of NVIDIA's."""
    board: str
    """The uuid of the whole GPU; another one than `uuid` only for an instance."""
    name: str
    bus: str
    """Address on the PCI bus, "0000:c1:00", lower case; empty where the driver does not tell it."""

    @property
    def is_instance(self) -> bool:
        """Whether it is one part of a partitioned GPU."""
        return self.uuid != self.board


class DriverError(Exception):
    """The driver did not answer; str() is one sentence that says why.

    `lasting`: it will not answer later either. `lost`: nothing is answered any more until the driver is opened anew.
    """

    def __init__(self, because: str, *, lasting: bool = False, lost: bool = False) -> None:
        super().__init__(because)
        self.lasting = lasting
        self.lost = lost


class GpuDriver(Protocol):
    """What every driver does. Each method but `close` raises DriverError."""

    def open(self) -> None:
        """Loads the maker's library."""
        ...

    def gpus(self) -> Sequence[GpuDevice]:
        """Every GPU and instance that the driver lists to us."""
        ...

    def close(self) -> None:
        """Gives the library back. It may be called twice."""
        ...


D_contra = TypeVar("D_contra", contravariant=True)


class GpuQuery(Protocol[D_contra]):
    """Something that a driver is asked about one GPU."""

    @property
    def signals(self) -> tuple[str, ...]:
        """What the answer holds, names of `schema.series.SERIES`."""
        ...

    @property
    def every_s(self) -> float:
        """How long to wait between two answers, at the least."""
        ...

    def ask(self, driver: D_contra, gpu: GpuDevice) -> Mapping[str, float]:
        """Values by signal, in the signal's unit; a signal may be left out. Raises DriverError."""
        ...
