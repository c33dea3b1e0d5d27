"""The queries of NVML: their intervals, and the conversion of results to the units of the signals.

Units and constants are those of NVML's API reference: milliwatts, millijoules, MHz, percent, KB/s, KiB. The fields
NVML_FI_DEV_CLOCKS_EVENT_REASON_*_SLOWDOWN are not used, because their numbers changed between releases (251 to 253,
then 269 to 271). Instead, nvmlDeviceGetViolationStatus is used, which counts the same in nanoseconds under a stable
name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tb_bottleneck.monitor.nvml.readings import (
    EVERY_LINK,
    NvmlDriver,
    OtherProcesses,
    OtherWork,
    PcieTraffic,
    as_number,
    call_newest,
    field_of,
)
from tb_bottleneck.monitor.samplers.gpu_driver import GpuDevice, GpuQuery

FAST_S, MEDIUM_S, RARE_S = 1.0, 5.0, 60.0
SENSOR_GPU, CLOCK_SM, CLOCK_MEMORY, POLICY_POWER, POLICY_THERMAL = 0, 1, 2, 0, 1
FIELD_MEMORY_TEMPERATURE, FIELD_NVLINK_SENT, FIELD_NVLINK_RECEIVED = 82, 138, 139
# GPM's metrics are percentages.
METRICS = {"sm_activity": 2, "sm_occupancy": 3, "tensor_activity": 5, "dram_activity": 10, "fp32_activity": 12}
_PERCENT, _MILLI, _MEGA, _KIB = 0.01, 1e-3, 1e6, 1024.0


@dataclass(frozen=True)
class NvmlQuery:
    """A query without state, which is due every `every_s` seconds. `function` gets the driver and a GPU, and returns
    values by signal name. `signals` has all names that the result can contain."""

    signals: tuple[str, ...]
    every_s: float
    function: Callable[[NvmlDriver, GpuDevice], Mapping[str, float]]

    def read(self, driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns the values for `gpu` by signal name, in the units of the signals. Raises DriverError."""
        return self.function(driver, gpu)


def queries() -> list[GpuQuery[NvmlDriver]]:
    """Returns new queries for one sampler. Samplers must not share them, because some queries have state."""
    return [
        NvmlQuery(("gpu_utilisation", "memory_utilisation"), FAST_S, _utilisation),
        NvmlQuery(("memory_used", "memory_total"), FAST_S, _memory),
        _number("power", FAST_S, _MILLI, "nvmlDeviceGetPowerUsage"),
        _number("sm_clock", FAST_S, _MEGA, "nvmlDeviceGetClockInfo", CLOCK_SM),
        _number("memory_clock", MEDIUM_S, _MEGA, "nvmlDeviceGetClockInfo", CLOCK_MEMORY),
        NvmlQuery(("clock_event_reasons",), FAST_S, _clock_event_reasons),
        _number("pcie_generation", FAST_S, 1, "nvmlDeviceGetCurrPcieLinkGeneration"),
        _number("pcie_width", FAST_S, 1, "nvmlDeviceGetCurrPcieLinkWidth"),
        PcieTraffic(),
        NvmlQuery(tuple(METRICS), FAST_S, _performance),
        _number("energy_total", MEDIUM_S, _MILLI, "nvmlDeviceGetTotalEnergyConsumption"),
        _number("temperature", MEDIUM_S, 1, "nvmlDeviceGetTemperature", SENSOR_GPU),
        _field("memory_temperature", 1, FIELD_MEMORY_TEMPERATURE),
        NvmlQuery(("power_capped_total",), MEDIUM_S, _violation("power_capped_total", POLICY_POWER)),
        NvmlQuery(("thermal_capped_total",), MEDIUM_S, _violation("thermal_capped_total", POLICY_THERMAL)),
        _number("pcie_replays_total", MEDIUM_S, 1, "nvmlDeviceGetPcieReplayCounter"),
        _field("nvlink_sent_total", _KIB, FIELD_NVLINK_SENT, EVERY_LINK),
        _field("nvlink_received_total", _KIB, FIELD_NVLINK_RECEIVED, EVERY_LINK),
        OtherProcesses(),
        OtherWork(),
        _number("power_limit", RARE_S, _MILLI, "nvmlDeviceGetEnforcedPowerLimit"),
        _number("power_limit_default", RARE_S, _MILLI, "nvmlDeviceGetPowerManagementDefaultLimit"),
        _number("sm_clock_max", RARE_S, _MEGA, "nvmlDeviceGetMaxClockInfo", CLOCK_SM),
        _number("memory_clock_max", RARE_S, _MEGA, "nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY),
        _number("pcie_generation_max", RARE_S, 1, "nvmlDeviceGetMaxPcieLinkGeneration"),
        _number("pcie_generation_gpu_max", RARE_S, 1, "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
        _number("pcie_width_max", RARE_S, 1, "nvmlDeviceGetMaxPcieLinkWidth"),
    ]


def _number(signal: str, every_s: float, scale: float, function: str, *arguments: int) -> NvmlQuery:
    """Returns a query of the signal `signal`, a number about the whole GPU. The query is due every `every_s` seconds.
    The result of NVML's `function`, called with `arguments`, is multiplied by `scale`."""

    def read(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        return {signal: as_number(driver.call(function, gpu.board, *arguments)) * scale}

    return NvmlQuery((signal,), every_s, read)


def _field(signal: str, scale: float, field_id: int, scope: int = 0) -> NvmlQuery:
    def read(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        return {signal: driver.field(gpu.board, field_id, scope) * scale}

    return NvmlQuery((signal,), MEDIUM_S, read)


def _violation(signal: str, policy: int) -> Callable[[NvmlDriver, GpuDevice], Mapping[str, float]]:
    def read(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
        return {signal: field_of(driver.call("nvmlDeviceGetViolationStatus", gpu.board, policy), "violationTime")}

    return read


def _utilisation(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
    # For the instance itself: the board's utilisation includes other instances.
    answer = driver.call("nvmlDeviceGetUtilizationRates", gpu.uuid)
    return {
        "gpu_utilisation": field_of(answer, "gpu") * _PERCENT,
        "memory_utilisation": field_of(answer, "memory") * _PERCENT,
    }


def _memory(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
    answer = driver.call("nvmlDeviceGetMemoryInfo", gpu.uuid)
    return {"memory_used": field_of(answer, "used"), "memory_total": field_of(answer, "total")}


def _clock_event_reasons(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
    # `older` is the name before driver 535, which CUDA 14 removes. The bits of the result are the same.
    newer, older = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
    return {"clock_event_reasons": as_number(call_newest(driver, gpu.board, newer, older))}


def _performance(driver: NvmlDriver, gpu: GpuDevice) -> Mapping[str, float]:
    values = driver.performance(gpu, tuple(METRICS.values()))
    return {signal: values[metric] * _PERCENT for signal, metric in METRICS.items() if metric in values}
