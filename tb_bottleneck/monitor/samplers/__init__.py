"""Samplers of the host, and of the GPUs that this process uses."""

import sys

from tb_bottleneck.monitor import amd, nvml
from tb_bottleneck.monitor.samplers.cpu import Cores, Pressure, Quota, RunQueue, UsableCores
from tb_bottleneck.monitor.samplers.host_memory import HostMemory, PinnedMemory, ProcessMemory, SharedMemory
from tb_bottleneck.monitor.samplers.io import Disks, Network
from tb_bottleneck.monitor.samplers.loader_workers import Workers
from tb_bottleneck.monitor.samplers.processes import OwnProcess
from tb_bottleneck.monitor.samplers.sampler import Sampler


def all_samplers() -> list[Sampler]:
    """Returns new samplers for this process. Each sampler may be used on one thread only. Nothing is opened before
    `read`."""
    return [
        Cores(),
        UsableCores(),
        Pressure(),
        RunQueue(),
        Quota(),
        OwnProcess(),
        Workers(),
        Disks(),
        Network(),
        HostMemory(),
        ProcessMemory(),
        SharedMemory(),
        PinnedMemory(),
        _of_gpus(),
    ]


def _of_gpus() -> Sampler:
    """Returns the sampler of GPUs for torch's build: AMD GPUs for ROCm, otherwise NVIDIA GPUs. No build supports
    both."""
    torch = sys.modules.get("torch")
    return amd.sampler() if torch is not None and torch.version.hip else nvml.sampler()
