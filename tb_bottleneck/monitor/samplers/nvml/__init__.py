"""Samples NVIDIA GPUs with NVML."""

from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler
from tb_bottleneck.monitor.samplers.nvml.binding import Nvml
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlDriver
from tb_bottleneck.monitor.samplers.nvml.queries import queries
from tb_bottleneck.monitor.samplers.own_gpus import by_uuid


def sampler() -> "GpuSampler[NvmlDriver]":
    """Returns a new sampler of NVIDIA GPUs. Without a driver, all signals are missing with the reason."""
    return GpuSampler(Nvml(), queries(), by_uuid)
