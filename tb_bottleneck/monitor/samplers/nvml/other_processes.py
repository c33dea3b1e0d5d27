"""Other processes on a GPU: their number, and their share of its time.

Only counts are recorded, never a name or id.
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

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """See the protocol. Raises DriverError."""
        return {"other_processes": float(len(_other_pids(driver, gpu, self._own())))}


class OtherWork:
    """The GPU utilisation by other processes, as the driver samples it."""

    signals = ("other_processes_utilisation",)
    every_s = 5.0

    def __init__(self, own: Callable[[], Set[int]] = own_processes) -> None:
        self._own = own
        self._last_timestamp: dict[str, int] = {}

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns nothing at the first call, when the driver's samples are from before the monitor. Raises
        DriverError."""
        own = self._own()
        _other_pids(driver, gpu, own)
        since = self._last_timestamp.get(gpu.uuid, 0)
        samples = as_rows(driver.call("nvmlDeviceGetProcessUtilization", gpu.uuid, since))
        new = [sample for sample in samples if sample["timeStamp"] > since]
        self._last_timestamp[gpu.uuid] = max([since, *(sample["timeStamp"] for sample in new)])
        if not since:
            return {}
        others: dict[int, list[int]] = {}
        for sample in new:
            if sample["pid"] not in own:
                others.setdefault(sample["pid"], []).append(sample["smUtil"])
        percent = sum(sum(values) / len(values) for values in others.values())
        return {"other_processes_utilisation": min(percent / 100, 1.0)}


def _other_pids(driver: NvmlDriver, gpu: GpuDevice, own: Set[int]) -> set[int]:
    return other_processes({row["pid"] for row in as_rows(call_newest(driver, gpu.uuid, *_FUNCTIONS))}, own)
