"""AMD's GPUs, through AMD SMI."""

from tb_bottleneck.monitor.samplers.amd.binding import AmdSmi
from tb_bottleneck.monitor.samplers.amd.questions import questions
from tb_bottleneck.monitor.samplers.gpus import Gpus
from tb_bottleneck.monitor.samplers.ours import by_bus


def sampler() -> Gpus[AmdSmi]:
    """A new sampler of this process's AMD GPUs; without the library everything is missing, with the reason."""
    return Gpus(AmdSmi(), questions(), by_bus)
