"""Other tenants of a GPU: how many other processes have work on it, and how much of its time they take.

Only counts are kept, never a name or an id.
"""

from collections.abc import Callable, Mapping, Set

from tb_bottleneck.monitor.samplers.gpu_driver import GpuDevice
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlDriver
from tb_bottleneck.monitor.samplers.nvml.parse import as_rows, call_newest
from tb_bottleneck.monitor.samplers.other_processes import other_processes, own_processes

_FUNCTIONS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")


class OtherProcesses:
    """Processes with compute work on the GPU that do not belong to this run."""

    signals = ("other_processes",)
    every_s = 5.0

    def __init__(self, own: Callable[[], Set[int]] = own_processes) -> None:
        self._own = own

    def ask(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Raises DriverError."""
        return {"other_processes": float(len(_strangers(driver, gpu, self._own())))}


class OtherWork:
    """The time that their kernels take, as the driver samples it."""

    signals = ("other_processes_utilisation",)
    every_s = 5.0

    def __init__(self, own: Callable[[], Set[int]] = own_processes) -> None:
        self._own = own
        self._seen: dict[str, int] = {}

    def ask(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """The first call gives nothing: the driver remembers what was before us. Raises DriverError."""
        own = self._own()
        _strangers(driver, gpu, own)
        since = self._seen.get(gpu.uuid, 0)
        samples = as_rows(driver.call("nvmlDeviceGetProcessUtilization", gpu.uuid, since))
        new = [sample for sample in samples if sample["timeStamp"] > since]
        self._seen[gpu.uuid] = max([since, *(sample["timeStamp"] for sample in new)])
        if not since:
            return {}
        others: dict[int, list[int]] = {}
        for sample in new:
            if sample["pid"] not in own:
                others.setdefault(sample["pid"], []).append(sample["smUtil"])
        percent = sum(sum(values) / len(values) for values in others.values())
        return {"other_processes_utilisation": min(percent / 100, 1.0)}


def _strangers(driver: NvmlDriver, gpu: GpuDevice, own: Set[int]) -> set[int]:
    return other_processes({row["pid"] for row in as_rows(call_newest(driver, gpu.uuid, *_FUNCTIONS))}, own)
