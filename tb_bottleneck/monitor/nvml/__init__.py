"""Samples NVIDIA GPUs with NVML."""

from tb_bottleneck.monitor.nvml.binding import Nvml
from tb_bottleneck.monitor.nvml.queries import queries
from tb_bottleneck.monitor.nvml.readings import NvmlDriver
from tb_bottleneck.monitor.samplers.gpu_driver import by_uuid
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler


def sampler() -> "GpuSampler[NvmlDriver]":
    """Returns a new sampler of NVIDIA GPUs. Without a driver, the sampler reports all signals as missing, with the
    reason."""
    return GpuSampler(Nvml(), queries(), by_uuid)
