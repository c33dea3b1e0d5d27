"""Samplers of the host, and of the GPUs that this process uses."""

import sys

from tb_bottleneck.monitor.samplers import amd, nvml
from tb_bottleneck.monitor.samplers.cores import Cores, UsableCores
from tb_bottleneck.monitor.samplers.cpu_quota import Quota
from tb_bottleneck.monitor.samplers.disks import Disks
from tb_bottleneck.monitor.samplers.host_memory import HostMemory
from tb_bottleneck.monitor.samplers.loader_workers import Workers
from tb_bottleneck.monitor.samplers.network import Network
from tb_bottleneck.monitor.samplers.own_process import OwnProcess
from tb_bottleneck.monitor.samplers.pinned_memory import PinnedMemory
from tb_bottleneck.monitor.samplers.pressure import Pressure, RunQueue
from tb_bottleneck.monitor.samplers.process_memory import ProcessMemory
from tb_bottleneck.monitor.samplers.sampler import Sampler
from tb_bottleneck.monitor.samplers.shared_memory import SharedMemory


def all_samplers() -> list[Sampler]:
    """Returns new samplers for this process, each for one thread only. They open nothing before their first reading."""
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
    """Chooses by torch's build: torch for ROCm sees no NVIDIA GPU, and any other build no AMD GPU."""
    torch = sys.modules.get("torch")
    return amd.sampler() if torch is not None and torch.version.hip else nvml.sampler()
