"""What a calibration is of: a device by its name, and the driver or library that ran it."""

import sys
from functools import lru_cache
from typing import Any

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.facts import calibration_store
from tb_bottleneck.monitor.facts.cpu import cpu_name


def of_cpu(torch: Any) -> tuple[str, str]:
    """(name, what ran it). Torch's products on a CPU come from its own libraries, and from as many threads."""
    try:
        name = cpu_name()
    except OSError:  # only Linux has /proc/cpuinfo
        name = None
    return name or "CPU", f"torch {torch.__version__}, {torch.get_num_threads()} threads"


def of_gpu(torch: Any, index: int | None = None) -> tuple[str, str]:
    """(name, driver) of a GPU that torch has begun to use; without an index, of the one that this process works on."""
    name = str(torch.cuda.get_device_name(own_gpu(torch) if index is None else index))
    return name, f"ROCm {torch.version.hip}" if torch.version.hip else nvidia_driver()


@lru_cache(maxsize=1)
def nvidia_driver() -> str:
    """The driver's version, such as "570.86.15"; "unknown" where NVML does not tell."""
    from tb_bottleneck.monitor.samplers.gpu_driver import DriverError
    from tb_bottleneck.monitor.samplers.nvml.binding import Nvml

    nvml = Nvml()
    try:
        nvml.open()
        return nvml.driver_version()
    except DriverError:
        return "unknown"
    finally:
        nvml.close()


def calibration() -> dict[str, float] | None:
    """What `tb-bottleneck calibrate` measured on the device that this process uses; None where it did not, or where
    torch is not loaded. As long as no GPU is in use, the device is the CPU."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    return calibration_store.recall(*(of_gpu(torch) if torch.cuda.is_initialized() else of_cpu(torch)))
