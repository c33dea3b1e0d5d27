"""Queries and the sampler of AMD GPUs, through AMD SMI.

This is the only module that imports amdsmi (AMD SMI), which is part of ROCm and not a dependency of this package.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tb_bottleneck.monitor.samplers.gpu_driver import (
    DriverError,
    GpuDevice,
    GpuQuery,
    by_bus,
    other_processes,
    own_processes,
)
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler

_LASTING = ("NOT_SUPPORTED", "NOT_YET_IMPLEMENTED", "NO_PERM", "FAIL_LOAD_SYMBOL", "INVAL")
_LOST = ("NOT_INIT", "DRIVER_NOT_LOADED", "NO_SLOT", "FAIL_LOAD_MODULE")


class AmdSmi:
    """The library AMD SMI, with the interface of a GPU driver. Not thread-safe."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._handles: dict[str, Any] = {}

    def open(self) -> None:
        """Imports and initialises amdsmi. Raises DriverError."""
        try:
            import amdsmi
        except (ImportError, OSError, KeyError) as error:  # its own search for the library may raise any of these
            raise DriverError(
                f"ROCm's Python package amdsmi cannot be imported ({type(error).__name__})", lasting=True
            ) from error
        self._module = amdsmi
        with self._driver_errors():
            amdsmi.amdsmi_init()

    def gpus(self) -> Sequence[GpuDevice]:
        """Returns the GPUs in the library's order. Raises DriverError."""
        gpus = []
        with self._driver_errors():
            for handle in self._smi.amdsmi_get_processor_handles():
                uuid = str(self._smi.amdsmi_get_gpu_device_uuid(handle))
                bus = str(self._smi.amdsmi_get_gpu_device_bdf(handle)).lower().partition(".")[0]
                name = str(self._smi.amdsmi_get_gpu_asic_info(handle).get("market_name", ""))
                self._handles[uuid] = handle
                gpus.append(GpuDevice(uuid, uuid, name, bus))
        return gpus

    def call(self, function: str, uuid: str, *constants: str) -> Any:
        """Returns the result of amdsmi's `function` for the GPU with this `uuid`. Raises DriverError.

        `constants` are names of further arguments, such as "AmdSmiClkType.GFX".
        """
        method = getattr(self._smi, function, None)
        if method is None:
            raise DriverError(f"the installed amdsmi has no {function}", lasting=True)
        with self._driver_errors():
            return method(self._handles[uuid], *(self._constant(name) for name in constants))

    def close(self) -> None:
        """Shuts the library down. Errors of a lost driver are ignored."""
        module, self._module, self._handles = self._module, None, {}
        if module is None:
            return
        try:
            module.amdsmi_shut_down()
        except module.AmdSmiException:
            return  # a lost driver has released everything

    @property
    def _smi(self) -> Any:
        if self._module is None:
            raise DriverError("AMD SMI is not open", lost=True)
        return self._module

    def _constant(self, name: str) -> Any:
        group, _, member = name.partition(".")
        try:
            return getattr(getattr(self._smi, group), member)
        except AttributeError as error:
            raise DriverError(f"the installed amdsmi has no {name}", lasting=True) from error

    @contextmanager
    def _driver_errors(self) -> Iterator[None]:
        """A context that converts the library's errors to DriverError. The text of such an error begins with the name
        of its error code."""
        try:
            yield
        except self._smi.AmdSmiException as error:
            text = str(getattr(error, "err_info", "") or error)
            code = text.partition(" ")[0].removeprefix("AMDSMI_STATUS_")
            raise DriverError(
                f"the driver did not answer (AMD SMI: {code or type(error).__name__})",
                lasting=code in _LASTING,
                lost=code in _LOST,
            ) from error


def number(answer: Mapping[str, Any], *names: str) -> float:
    """Returns the value of the first key in `names` whose entry in `answer` is a number. `answer` is a result of
    amdsmi, which writes "N/A" for missing values.

    Raises DriverError if none of these entries is a number."""
    for name in names:
        value = answer.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    raise DriverError(f"this GPU does not report {names[0]}", lasting=True)


FAST_S, MEDIUM_S, RARE_S = 1.0, 5.0, 60.0
# PCI Express base specification: transfers per second and lane, in MT/s, by generation.
GENERATIONS = {2500: 1, 5000: 2, 8000: 3, 16000: 4, 32000: 5, 64000: 6}
_PERCENT, _MICRO, _MEGA = 0.01, 1e-6, 1e6


@dataclass(frozen=True)
class AmdQuery:
    """A query without state, which is due every `every_s` seconds. `function` gets the library and the UUID of a GPU,
    and returns values by signal name. `signals` has all names that the result can contain."""

    signals: tuple[str, ...]
    every_s: float
    function: Callable[[AmdSmi, str], Mapping[str, float]]

    def read(self, driver: AmdSmi, gpu: GpuDevice) -> Mapping[str, float]:
        """Returns the values for `gpu` by signal name, in the units of the signals. Raises DriverError."""
        return self.function(driver, gpu.uuid)


def queries() -> list[GpuQuery[AmdSmi]]:
    """Returns all queries. Each query has an interval, and converts the library's results to the units of the signals.

    The library's units are those of AMD SMI's Python reference: percent, W, µW for power caps, MHz, MT/s, and µJ per
    step of the energy counter. The counters of power and thermal violations are not read, because the length of their
    steps is not documented. PCIe traffic is not read, because its direction is not reported.
    """
    return [
        AmdQuery(("gpu_utilisation",), FAST_S, lambda smi, gpu: _activity(smi, gpu, "gpu_utilisation", "gfx_activity")),
        AmdQuery(
            ("memory_utilisation",), FAST_S, lambda smi, gpu: _activity(smi, gpu, "memory_utilisation", "umc_activity")
        ),
        AmdQuery(
            ("memory_used",), FAST_S, lambda smi, gpu: _memory(smi, gpu, "memory_used", "amdsmi_get_gpu_memory_usage")
        ),
        AmdQuery(
            ("memory_total",), RARE_S, lambda smi, gpu: _memory(smi, gpu, "memory_total", "amdsmi_get_gpu_memory_total")
        ),
        AmdQuery(("power",), FAST_S, _power),
        AmdQuery(("power_limit",), RARE_S, lambda smi, gpu: _cap(smi, gpu, "power_limit", "power_cap")),
        AmdQuery(
            ("power_limit_default",),
            RARE_S,
            lambda smi, gpu: _cap(smi, gpu, "power_limit_default", "default_power_cap"),
        ),
        AmdQuery(("energy_total",), MEDIUM_S, _energy),
        AmdQuery(("temperature",), MEDIUM_S, lambda smi, gpu: _temperature(smi, gpu, "temperature", "HOTSPOT")),
        AmdQuery(
            ("memory_temperature",), MEDIUM_S, lambda smi, gpu: _temperature(smi, gpu, "memory_temperature", "VRAM")
        ),
        AmdQuery(("sm_clock", "sm_clock_max"), FAST_S, lambda smi, gpu: _clock(smi, gpu, "sm_clock", "GFX")),
        AmdQuery(
            ("memory_clock", "memory_clock_max"), MEDIUM_S, lambda smi, gpu: _clock(smi, gpu, "memory_clock", "MEM")
        ),
        AmdQuery(("pcie_generation", "pcie_width"), FAST_S, _link),
        AmdQuery(("pcie_generation_max", "pcie_width_max"), RARE_S, _link_maxima),
        AmdQuery(("pcie_replays_total",), MEDIUM_S, _replays),
        AmdQuery(("other_processes",), MEDIUM_S, _others),
    ]


def _activity(smi: AmdSmi, gpu: str, signal: str, name: str) -> Mapping[str, float]:
    return {signal: number(smi.call("amdsmi_get_gpu_activity", gpu), name) * _PERCENT}


def _memory(smi: AmdSmi, gpu: str, signal: str, function: str) -> Mapping[str, float]:
    return {signal: float(smi.call(function, gpu, "AmdSmiMemoryType.VRAM"))}


def _power(smi: AmdSmi, gpu: str) -> Mapping[str, float]:
    # MI300 and newer GPUs report the present power, older GPUs a mean.
    names = ("current_socket_power", "average_socket_power", "socket_power")
    return {"power": number(smi.call("amdsmi_get_power_info", gpu), *names)}


def _cap(smi: AmdSmi, gpu: str, signal: str, name: str) -> Mapping[str, float]:
    return {signal: number(smi.call("amdsmi_get_power_cap_info", gpu), name) * _MICRO}


def _energy(smi: AmdSmi, gpu: str) -> Mapping[str, float]:
    energy = smi.call("amdsmi_get_energy_count", gpu)
    return {"energy_total": number(energy, "energy_accumulator") * number(energy, "counter_resolution") * _MICRO}


def _temperature(smi: AmdSmi, gpu: str, signal: str, sensor: str) -> Mapping[str, float]:
    constants = (f"AmdSmiTemperatureType.{sensor}", "AmdSmiTemperatureMetric.CURRENT")
    return {signal: float(smi.call("amdsmi_get_temp_metric", gpu, *constants))}


def _clock(smi: AmdSmi, gpu: str, signal: str, kind: str) -> Mapping[str, float]:
    clock = smi.call("amdsmi_get_clock_info", gpu, f"AmdSmiClkType.{kind}")
    return {signal: number(clock, "clk") * _MEGA, f"{signal}_max": number(clock, "max_clk") * _MEGA}


def _link(smi: AmdSmi, gpu: str) -> Mapping[str, float]:
    metric = smi.call("amdsmi_get_pcie_info", gpu)["pcie_metric"]
    return {"pcie_generation": _generation(number(metric, "pcie_speed")), "pcie_width": number(metric, "pcie_width")}


def _link_maxima(smi: AmdSmi, gpu: str) -> Mapping[str, float]:
    static = smi.call("amdsmi_get_pcie_info", gpu)["pcie_static"]
    speed = _generation(number(static, "max_pcie_speed"))
    return {"pcie_generation_max": speed, "pcie_width_max": number(static, "max_pcie_width")}


def _replays(smi: AmdSmi, gpu: str) -> Mapping[str, float]:
    metric = smi.call("amdsmi_get_pcie_info", gpu)["pcie_metric"]
    return {"pcie_replays_total": number(metric, "pcie_replay_count")}


def _generation(speed: float) -> float:
    if speed not in GENERATIONS:
        raise DriverError(f"the driver reports a PCIe speed of {speed:g} MT/s, which no generation has")
    return float(GENERATIONS[int(speed)])


def _others(smi: AmdSmi, gpu: str) -> Mapping[str, float]:
    listed = {int(number(row, "pid")) for row in smi.call("amdsmi_get_gpu_process_list", gpu)}
    return {"other_processes": float(len(other_processes(listed, own_processes())))}


def sampler() -> GpuSampler[AmdSmi]:
    """Returns a new sampler of AMD GPUs. If the library is not installed, the sampler reports all signals as missing,
    with the reason."""
    return GpuSampler(AmdSmi(), queries(), by_bus)
