"""AMD's GPUs, through AMD SMI."""

from tb_bottleneck.monitor.samplers.amd.binding import AmdSmi
from tb_bottleneck.monitor.samplers.amd.queries import queries
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler
from tb_bottleneck.monitor.samplers.own_gpus import by_bus


def sampler() -> GpuSampler[AmdSmi]:
    """A new sampler of this process's AMD GPUs; without the library everything is missing, with the reason."""
    return GpuSampler(AmdSmi(), queries(), by_bus)
