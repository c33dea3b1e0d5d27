"""The key of a calibration: the device's name, and the driver or library that runs it."""

import sys
from functools import lru_cache
from typing import Any

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.facts import calibration_store
from tb_bottleneck.monitor.facts.cpu import cpu_name


def of_cpu(torch: Any) -> tuple[str, str]:
    """Returns (name, torch version and threads): torch's own libraries and its threads determine a CPU's speed."""
    try:
        name = cpu_name()
    except OSError:  # only Linux has /proc/cpuinfo
        name = None
    return name or "CPU", f"torch {torch.__version__}, {torch.get_num_threads()} threads"


def of_gpu(torch: Any, index: int | None = None) -> tuple[str, str]:
    """Returns (name, driver) of an initialised GPU; by default, of the GPU that this process uses."""
    name = str(torch.cuda.get_device_name(own_gpu(torch) if index is None else index))
    return name, f"ROCm {torch.version.hip}" if torch.version.hip else nvidia_driver()


@lru_cache(maxsize=1)
def nvidia_driver() -> str:
    """Returns the driver's version, such as "570.86.15", or "unknown"."""
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
    """Returns the results of `tb-bottleneck calibrate` for the device that this process uses: the CPU until a GPU is
    initialised. None if there are no results, or torch is not imported."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    return calibration_store.load(*(of_gpu(torch) if torch.cuda.is_initialized() else of_cpu(torch)))
