"""The interface of NVML, the parsing of its results, and the readings of GPM, PCIe traffic and other processes.

A result without the documented structure raises DriverError.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol

import pynvml

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice, GpuDriver, other_processes, own_processes
from tb_bottleneck.monitor.samplers.io import Clock, Rates

NvmlValue = int | str | Mapping[str, int] | Sequence[Mapping[str, int]]

EVERY_LINK = 0xFFFFFFFF
"""The scope with which an NVLink field gives the sum over all links."""


class NvmlDriver(GpuDriver, Protocol):
    """The interface of NVML. Each method may raise DriverError.

    The class Nvml implements this interface with the real library; tests implement it with recorded results. Functions
    have the names of NVML's documentation. Results have the documented structure: a structure becomes a mapping of its
    fields, and an array becomes a list. Recorded results can therefore be compared with the documentation."""

    def call(self, function: str, uuid: str, *arguments: int) -> NvmlValue:
        """Returns the result of NVML's `function` for the GPU with this `uuid` and `arguments`."""
        ...

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        """Returns the value of the field `field_id` of the GPU with this `uuid`, from nvmlDeviceGetFieldValues. `scope`
        is the scopeId of the field. Raises DriverError for 32-bit counters, whose overflow cannot be detected."""
        ...

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        """Returns the values of the GPM metrics with the ids `metrics` between the last call and this call, by metric
        id (nvmlGpmMetricsGet); empty at the first call."""
        ...


def call_newest(driver: NvmlDriver, uuid: str, newer: str, older: str) -> NvmlValue:
    """Returns the result of NVML's function `newer` for the GPU with this `uuid`, or of `older` if `newer` is unknown
    or permanently refused. Raises DriverError."""
    try:
        return driver.call(newer, uuid)
    except DriverError as error:
        if not error.lasting:
            raise
    return driver.call(older, uuid)


def as_number(answer: NvmlValue) -> float:
    """Returns `answer` as a float. Raises DriverError if `answer` is not an int."""
    if isinstance(answer, int):
        return float(answer)
    raise DriverError("the driver's result is not a number", lasting=True)


def field_of(answer: NvmlValue, name: str) -> float:
    """Returns the field `name` of the structure `answer`. Raises DriverError if there is no such field."""
    if isinstance(answer, Mapping) and name in answer:
        return float(answer[name])
    raise DriverError(f"the driver's result has no field {name}", lasting=True)


def as_rows(answer: NvmlValue) -> Sequence[Mapping[str, int]]:
    """Returns `answer` as a list of structures. Raises DriverError if `answer` is not a list."""
    if isinstance(answer, int | str | Mapping):
        raise DriverError("the driver's result is not a list", lasting=True)
    return answer


class GpmSamples:
    """The last two samples of one GPU for GPM, NVIDIA's GPU performance monitoring (Hopper and newer).

    The driver computes a metric from two samples. Each call of `since_last` replaces the older sample. Methods raise
    pynvml's errors. `board` is NVML's handle of the whole GPU; `instance` is the number of the instance of a
    partitioned GPU, or None for the whole GPU."""

    def __init__(self, board: Any, instance: int | None) -> None:
        self._board = board
        self._instance = instance
        self._older: Any = None
        self._newer: Any = None

    def since_last(self, metrics: Sequence[int]) -> Mapping[int, float]:
        """Returns the values of the metrics with the ids `metrics` since the last call, by metric id, without
        unsupported metrics; empty at the first call."""
        spare, self._older = self._older, self._newer
        self._newer = None  # after an error, the next call starts again
        sample = spare if spare is not None else pynvml.nvmlGpmSampleAlloc()
        try:
            if self._instance is None:
                pynvml.nvmlGpmSampleGet(self._board, sample)
            else:
                pynvml.nvmlGpmMigSampleGet(self._board, self._instance, sample)
        except pynvml.NVMLError:
            pynvml.nvmlGpmSampleFree(sample)
            raise
        self._newer = sample
        return self._between(metrics) if self._older is not None else {}

    def close(self) -> None:
        """Frees the samples."""
        samples, self._older, self._newer = (self._older, self._newer), None, None
        for sample in samples:
            if sample is not None:
                pynvml.nvmlGpmSampleFree(sample)

    def _between(self, metrics: Sequence[int]) -> Mapping[int, float]:
        request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(metrics)
        request.sample1, request.sample2 = self._older, self._newer
        for index, metric in enumerate(metrics):
            request.metrics[index].metricId = metric
        pynvml.nvmlGpmMetricsGet(request)
        results = ((metric.metricId, metric.nvmlReturn, metric.value) for metric in request.metrics[: len(metrics)])
        return {
            number: value for number, code, value in results if code == pynvml.NVML_SUCCESS and math.isfinite(value)
        }


SLOW_S = 10.0
_FIELDS = {"pcie_sent": 197, "pcie_received": 198}
_COUNTERS = {"pcie_sent": 0, "pcie_received": 1}
_KB = 1000.0
_EARLY = 0.1


class PcieTraffic:
    """A query of the bytes per second that each GPU sends and receives on the PCIe link.

    Newer drivers count bytes (fields 197 and 198). Without these counters, nvmlDeviceGetPcieThroughput is used, whose
    unit is KB/s. This function blocks for 20 ms per direction, so it is called only every SLOW_S seconds."""

    signals = ("pcie_sent", "pcie_received")
    every_s = 1.0

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._rates: dict[str, Rates] = {}
        self._no_counters: set[str] = set()
        self._slow_at: dict[str, float] = {}

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns the bytes per second by signal. Empty at the first call with counters and, without counters, until
        the next slow measurement is due. Raises DriverError."""
        if gpu.uuid not in self._no_counters:
            try:
                counted = {signal: driver.field(gpu.board, field) for signal, field in _FIELDS.items()}
            except DriverError as error:
                if not error.lasting:
                    raise
                self._no_counters.add(gpu.uuid)
            else:
                return self._rates.setdefault(gpu.uuid, Rates(self._clock)).per_second(counted)
        now = self._clock()
        if now < self._slow_at.get(gpu.uuid, now):
            return {}
        self._slow_at[gpu.uuid] = now + SLOW_S * (1 - _EARLY)
        return {
            signal: as_number(driver.call("nvmlDeviceGetPcieThroughput", gpu.board, counter)) * _KB
            for signal, counter in _COUNTERS.items()
        }


_FUNCTIONS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")


class OtherProcesses:
    """A query of the number of processes with compute work on the GPU that do not belong to this run.

    Only counts are recorded, never a name or id."""

    signals = ("other_processes",)
    every_s = 5.0

    def __init__(self, own: Callable[[], Set[int]] = own_processes) -> None:
        self._own = own

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns the number of other processes that use `gpu`, as `other_processes`. Raises DriverError."""
        return {"other_processes": float(len(_other_pids(driver, gpu, self._own())))}


class OtherWork:
    """A query of the GPU utilisation by other processes, as the driver samples it. No name or id of a process is
    recorded."""

    signals = ("other_processes_utilisation",)
    every_s = 5.0

    def __init__(self, own: Callable[[], Set[int]] = own_processes) -> None:
        self._own = own
        self._last_timestamp: dict[str, int] = {}

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns the utilisation of `gpu` by other processes, 0 to 1, as `other_processes_utilisation`. Raises
        DriverError.

        The result of the first call is empty, because its samples are from before the monitor started."""
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
