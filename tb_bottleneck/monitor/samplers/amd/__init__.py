"""Samples AMD GPUs with AMD SMI."""

from tb_bottleneck.monitor.samplers.amd.binding import AmdSmi
from tb_bottleneck.monitor.samplers.amd.queries import queries
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler
from tb_bottleneck.monitor.samplers.own_gpus import by_bus


def sampler() -> GpuSampler[AmdSmi]:
    """Returns a new sampler of AMD GPUs. Without the library, all signals are missing with the reason."""
    return GpuSampler(AmdSmi(), queries(), by_bus)
