"""NVIDIA's GPUs, through NVML."""

from tb_bottleneck.monitor.samplers.gpus import Gpus
from tb_bottleneck.monitor.samplers.nvml.binding import Nvml
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlDriver
from tb_bottleneck.monitor.samplers.nvml.questions import questions
from tb_bottleneck.monitor.samplers.ours import by_uuid


def sampler() -> "Gpus[NvmlDriver]":
    """A new sampler of this process's NVIDIA GPUs; without a driver everything is missing, with the reason."""
    return Gpus(Nvml(), questions(), by_uuid)
