"""The readings there are: of the host, and of the GPUs that this process uses."""

import sys

from tb_bottleneck.monitor.samplers import amd, nvml
from tb_bottleneck.monitor.samplers.cores import Cores, UsableCores
from tb_bottleneck.monitor.samplers.cpu_quota import Quota
from tb_bottleneck.monitor.samplers.host_memory import HostMemory
from tb_bottleneck.monitor.samplers.loader_workers import Workers
from tb_bottleneck.monitor.samplers.network import Network
from tb_bottleneck.monitor.samplers.own_process import OwnProcess
from tb_bottleneck.monitor.samplers.pressure import Pressure, RunQueue
from tb_bottleneck.monitor.samplers.sampler import Sampler
from tb_bottleneck.monitor.samplers.storage import Disks


def all_samplers() -> list[Sampler]:
    """New samplers for this process, each to be asked from one thread only. Nothing is opened before the first is."""
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
        _of_gpus(),
    ]


def _of_gpus() -> Sampler:
    """The maker is torch's to say: a torch for ROCm sees no NVIDIA GPU, and any other none of AMD's."""
    torch = sys.modules.get("torch")
    return amd.sampler() if torch is not None and torch.version.hip else nvml.sampler()
