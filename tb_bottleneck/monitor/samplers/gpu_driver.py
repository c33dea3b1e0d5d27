"""The common interface of GPU drivers, and the selection of GPUs and processes that belong to this run.

GPUs are selected by identifiers from torch and never by index. torch numbers only the visible GPUs, in CUDA's order; a
driver numbers all GPUs in bus order. The same index may therefore mean different GPUs. Both torch and the driver know
the GPU's UUID (NVIDIA) or its bus address (AMD).
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tb_bottleneck.monitor.samplers.processes import process_tree


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU, or an instance of a partitioned GPU, as the driver lists it."""

    uuid: str
    """The UUID as the driver writes it; for NVIDIA "GPU-…" or "MIG-…"."""
    board: str
    """The UUID of the whole GPU, which differs from `uuid` only for an instance."""
    name: str
    bus: str
    """Address on the PCI bus, "0000:c1:00", lower case; empty if unknown."""

    @property
    def is_instance(self) -> bool:
        """True for a part of a partitioned GPU."""
        return self.uuid != self.board


class DriverError(Exception):
    """Raised if a query of a driver failed; str() is one sentence with the reason.

    `lasting` is True if the query will never succeed. `lost` is True if no query succeeds until the driver is opened
    again."""

    def __init__(self, because: str, *, lasting: bool = False, lost: bool = False) -> None:
        super().__init__(because)
        self.lasting = lasting
        self.lost = lost


class GpuDriver(Protocol):
    """The interface of a GPU driver's library. Every method except `close` may raise DriverError."""

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
        """The names of the signals in the result, from `schema.signals.SERIES`."""
        ...

    @property
    def every_s(self) -> float:
        """The minimum interval between two calls of `read`, in seconds."""
        ...

    def read(self, driver: D_contra, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns values for `gpu` by signal name, in the signal's unit. A signal may be missing. Raises
        DriverError."""
        ...


class UnknownGpus(Exception):
    """Raised if the GPUs of this process are not known, or not yet; str() is the reason."""


@dataclass(frozen=True, slots=True)
class TorchGpu:
    """A GPU as torch sees it. `uuid` (in lower case, without a prefix) and `bus` (PCI address) are empty if this
    version of torch does not report them."""

    uuid: str
    bus: str
    used: bool
    """True if torch's allocator has reserved memory on the GPU."""


def torch_gpus() -> list[TorchGpu] | None:
    """Returns the GPUs that torch sees, or None while torch has not initialised CUDA. Never initialises CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    gpus = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        bus = ""
        if hasattr(properties, "pci_bus_id"):
            domain, device = getattr(properties, "pci_domain_id", 0), getattr(properties, "pci_device_id", 0)
            bus = f"{domain:04x}:{properties.pci_bus_id:02x}:{device:02x}"
        uuid = _bare(str(getattr(properties, "uuid", "")))
        gpus.append(TorchGpu(uuid, bus, torch.cuda.memory_reserved(index) > 0))
    return gpus


def by_uuid(
    gpus: Sequence[GpuDevice],
    list_torch_gpus: Callable[[], list[TorchGpu] | None] = torch_gpus,
    environment: Mapping[str, str] = os.environ,
) -> list[GpuDevice]:
    """Returns those NVIDIA GPUs in `gpus` that this process uses, found by their UUIDs. Raises UnknownGpus if the GPUs
    of this process are not known.

    Until torch has initialised CUDA, UUIDs in CUDA_VISIBLE_DEVICES (from `environment`) tell which GPUs are used.
    Without UUIDs, the GPU is known only if the driver lists a single one."""
    by_torch = list_torch_gpus()
    if by_torch is not None:
        return _matched(gpus, [_bare(gpu.uuid) for gpu in gpus], by_torch, [gpu.uuid for gpu in by_torch])
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    words = [word.strip() for word in (visible or "").split(",")]
    if visible is not None and all(word.startswith(("GPU-", "MIG-")) for word in words):
        # CUDA accepts a unique prefix of a UUID.
        return [gpu for gpu in gpus if any(gpu.uuid.startswith(word) for word in words)]
    return _only(gpus, hidden=visible is not None and words[0] in ("", "-1"))


def by_bus(
    gpus: Sequence[GpuDevice], list_torch_gpus: Callable[[], list[TorchGpu] | None] = torch_gpus
) -> list[GpuDevice]:
    """Returns those AMD GPUs in `gpus` that this process uses, found by their PCI addresses. Raises UnknownGpus if the
    GPUs of this process are not known."""
    by_torch = list_torch_gpus()
    if by_torch is not None:
        return _matched(gpus, [gpu.bus for gpu in gpus], by_torch, [gpu.bus for gpu in by_torch])
    return _only(gpus, hidden=False)


def _matched(
    gpus: Sequence[GpuDevice], keys: Sequence[str], by_torch: Sequence[TorchGpu], torch_keys: Sequence[str]
) -> list[GpuDevice]:
    used = {key for gpu, key in zip(by_torch, torch_keys, strict=True) if key and (gpu.used or len(by_torch) == 1)}
    if not used:
        raise UnknownGpus("torch sees several GPUs and uses none yet, or does not give their UUIDs or bus addresses")
    matches = [gpu for gpu, key in zip(gpus, keys, strict=True) if key in used]
    if not matches:
        raise UnknownGpus("the driver lists no GPU with torch's UUID or bus address")
    return matches


def _only(gpus: Sequence[GpuDevice], hidden: bool) -> list[GpuDevice]:
    if hidden:
        raise UnknownGpus("CUDA_VISIBLE_DEVICES hides every GPU from this process")
    boards = {gpu.board for gpu in gpus}
    if not boards:
        raise UnknownGpus("the driver lists no GPU")
    if len(boards) == 1 and len(gpus) == 1:
        return list(gpus)
    raise UnknownGpus("there are several GPUs, and torch has not used any yet: wait for the first tensor on one")


def _bare(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-").removeprefix("mig-")


HIDDEN = "the driver's process list does not contain this process: a container hides it, or it does not use the GPU yet"


def own_processes() -> set[int]:
    """Returns the ids of this process and its descendants."""
    return {os.getpid(), *(process.pid for process in process_tree().descendants())}


def other_processes(listed: Set[int], own: Set[int]) -> set[int]:
    """Returns the process ids in `listed` that are not in `own`, the ids of this run's processes. `listed` has the
    processes that use the GPU, as the driver lists them.

    Raises DriverError if no process of this run is in `listed`. In this case, the list has ids of another namespace of
    process ids (a container) or is incomplete, so its ids cannot be compared with `own`."""
    if not listed & own:
        raise DriverError(HIDDEN)
    return set(listed - own)
