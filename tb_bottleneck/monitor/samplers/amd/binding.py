"""The door to AMD SMI: the only file that imports amdsmi, which comes with ROCm and is not a dependency of ours."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice

_LASTING = ("NOT_SUPPORTED", "NOT_YET_IMPLEMENTED", "NO_PERM", "FAIL_LOAD_SYMBOL", "INVAL")
_LOST = ("NOT_INIT", "DRIVER_NOT_LOADED", "NO_SLOT", "FAIL_LOAD_MODULE")


class AmdSmi:
    """AMD SMI itself. Not for several threads at once."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._handles: dict[str, Any] = {}

    def open(self) -> None:
        """Loads the library."""
        try:
            import amdsmi
        except (ImportError, OSError, KeyError) as error:  # it looks for its library by itself, in its own ways
            raise DriverError(
                f"the Python package amdsmi of the installed ROCm cannot be used ({type(error).__name__})", lasting=True
            ) from error
        self._module = amdsmi
        with self._refusals():
            amdsmi.amdsmi_init()

    def gpus(self) -> Sequence[GpuDevice]:
        """In the library's order."""
        found = []
        with self._refusals():
            for handle in self._smi.amdsmi_get_processor_handles():
                uuid = str(self._smi.amdsmi_get_gpu_device_uuid(handle))
                bus = str(self._smi.amdsmi_get_gpu_device_bdf(handle)).lower().partition(".")[0]
                name = str(self._smi.amdsmi_get_gpu_asic_info(handle).get("market_name", ""))
                self._handles[uuid] = handle
                found.append(GpuDevice(uuid, uuid, name, bus))
        return found

    def call(self, function: str, uuid: str, *constants: str) -> Any:
        """What `function(device, *constants)` returns; constants by name, as "AmdSmiClkType.GFX". Raises DriverError."""
        wanted = getattr(self._smi, function, None)
        if wanted is None:
            raise DriverError(f"the installed amdsmi does not know {function}", lasting=True)
        with self._refusals():
            return wanted(self._handles[uuid], *(self._constant(name) for name in constants))

    def close(self) -> None:
        """Gives the library back, as far as it is still there."""
        module, self._module, self._handles = self._module, None, {}
        if module is None:
            return
        try:
            module.amdsmi_shut_down()
        except module.AmdSmiException:
            return  # a driver that is gone has let go of everything by itself

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
            raise DriverError(f"the installed amdsmi does not know {name}", lasting=True) from error

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Makes the library's errors refusals; it tells them apart by words that begin with the code's name."""
        try:
            yield
        except self._smi.AmdSmiException as error:
            words = str(getattr(error, "err_info", "") or error)
            code = words.partition(" ")[0].removeprefix("AMDSMI_STATUS_")
            raise DriverError(
                f"the driver did not answer (AMD SMI: {code or type(error).__name__})",
                lasting=code in _LASTING,
                lost=code in _LOST,
            ) from error


def number(answer: Mapping[str, Any], *names: str) -> float:
    """The first of these entries that is a number: the library writes "N/A" for what a GPU does not tell. Raises
    DriverError."""
    for name in names:
        value = answer.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    raise DriverError(f"this GPU does not tell {names[0]}", lasting=True)
