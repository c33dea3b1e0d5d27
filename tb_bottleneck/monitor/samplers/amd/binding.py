"""The only module that imports amdsmi (AMD SMI), which is part of ROCm and not a dependency of this package."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice

_LASTING = ("NOT_SUPPORTED", "NOT_YET_IMPLEMENTED", "NO_PERM", "FAIL_LOAD_SYMBOL", "INVAL")
_LOST = ("NOT_INIT", "DRIVER_NOT_LOADED", "NO_SLOT", "FAIL_LOAD_MODULE")


class AmdSmi:
    """AMD SMI. Not thread-safe."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._handles: dict[str, Any] = {}

    def open(self) -> None:
        """Loads the library."""
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
        """Returns the GPUs in the library's order."""
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
        """Returns `function(device, *constants)`; constants by name, as "AmdSmiClkType.GFX". Raises DriverError."""
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
        """Converts the library's errors to DriverError. Their texts begin with the name of the error code."""
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
    """Returns the first of these entries that is a number: the library writes "N/A" for missing values. Raises
    DriverError."""
    for name in names:
        value = answer.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    raise DriverError(f"this GPU does not report {names[0]}", lasting=True)
