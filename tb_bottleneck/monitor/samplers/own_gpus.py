"""Which of the machine's GPUs this process uses, told by what torch says of them, never by their index.

torch counts GPUs in CUDA's order and only the visible ones, a driver counts all of them in the order of the bus: number
0 of one need not be number 0 of the other. What both know is the GPU's UUID (NVIDIA) or its place on the bus (AMD).
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.monitor.samplers.gpu_driver import GpuDevice


class UnknownGpus(Exception):
    """It cannot be told (yet) which GPUs are ours; str() says why."""


@dataclass(frozen=True, slots=True)
class TorchGpu:
    """A GPU as torch sees it. `uuid` without a prefix and `bus` are empty where this torch does not tell them."""

    uuid: str
    bus: str
    used: bool
    """Whether torch's allocator holds memory there."""


def torch_gpus() -> list[TorchGpu] | None:
    """The GPUs that torch sees, None as long as torch has not begun to use any (it is never made to begin)."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    found = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        bus = ""
        if hasattr(properties, "pci_bus_id"):
            domain, device = getattr(properties, "pci_domain_id", 0), getattr(properties, "pci_device_id", 0)
            bus = f"{domain:04x}:{properties.pci_bus_id:02x}:{device:02x}"
        uuid = _bare(str(getattr(properties, "uuid", "")))
        found.append(TorchGpu(uuid, bus, torch.cuda.memory_reserved(index) > 0))
    return found


def by_uuid(
    gpus: Sequence[GpuDevice],
    seen: Callable[[], list[TorchGpu] | None] = torch_gpus,
    environment: Mapping[str, str] = os.environ,
) -> list[GpuDevice]:
    """NVIDIA's GPUs that this process uses. Raises UnknownGpus."""
    by_torch = seen()
    if by_torch is not None:
        return _matched(gpus, [_bare(gpu.uuid) for gpu in gpus], by_torch, [one.uuid for one in by_torch])
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    words = [word.strip() for word in (visible or "").split(",")]
    if visible is not None and all(word.startswith(("GPU-", "MIG-")) for word in words):
        # CUDA takes as much of a UUID as tells it apart.
        return [gpu for gpu in gpus if any(gpu.uuid.startswith(word) for word in words)]
    return _only(gpus, hidden=visible is not None and words[0] in ("", "-1"))


def by_bus(gpus: Sequence[GpuDevice], seen: Callable[[], list[TorchGpu] | None] = torch_gpus) -> list[GpuDevice]:
    """AMD's GPUs that this process uses. Raises UnknownGpus."""
    by_torch = seen()
    if by_torch is not None:
        return _matched(gpus, [gpu.bus for gpu in gpus], by_torch, [one.bus for one in by_torch])
    return _only(gpus, hidden=False)


def _matched(
    gpus: Sequence[GpuDevice], keys: Sequence[str], by_torch: Sequence[TorchGpu], wanted: Sequence[str]
) -> list[GpuDevice]:
    used = {key for one, key in zip(by_torch, wanted, strict=True) if key and (one.used or len(by_torch) == 1)}
    if not used:
        raise UnknownGpus("torch sees several GPUs and has taken memory on none yet, or does not tell which they are")
    found = [gpu for gpu, key in zip(gpus, keys, strict=True) if key in used]
    if not found:
        raise UnknownGpus("the driver lists no GPU under the UUID or bus address that torch gives")
    return found


def _only(gpus: Sequence[GpuDevice], hidden: bool) -> list[GpuDevice]:
    if hidden:
        raise UnknownGpus("CUDA_VISIBLE_DEVICES hides every GPU from this process")
    boards = {gpu.board for gpu in gpus}
    if not boards:
        raise UnknownGpus("the driver lists no GPU")
    if len(boards) == 1 and len(gpus) == 1:
        return list(gpus)
    raise UnknownGpus("there are several GPUs, and torch has not begun to use any: wait for the first tensor on one")


def _bare(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-").removeprefix("mig-")
