"""The door to NVML: the only file that imports pynvml (of the package nvidia-ml-py)."""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pynvml

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlValue
from tb_bottleneck.monitor.samplers.nvml.gpm import GpmSamples

_LASTING = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
}
_LOST = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
}
_WORDS = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "this GPU, or this partition of it, does not give it to NVML",
    pynvml.NVML_ERROR_NO_PERMISSION: "the driver gives it to administrators only (NVML: insufficient permissions)",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver is older than the call that gives it",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver was found: its library libnvidia-ml is not on this system",
    pynvml.NVML_ERROR_GPU_IS_LOST: "the driver has lost the GPU (NVML: GPU is lost)",
}
_NARROW = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT,
    pynvml.NVML_VALUE_TYPE_SIGNED_INT,
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT,
}
# Where these say that nothing was found, they were asked rightly and there is nothing.
_NOTHING_IS_NOT_FOUND = {"nvmlDeviceGetProcessUtilization"}
_GAUGES = {pynvml.NVML_FI_DEV_MEMORY_TEMP}
_MEMBERS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


class Nvml:
    """NVML itself. Not for several threads at once."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        self._samples: dict[str, GpmSamples] = {}
        self._open = False

    def open(self) -> None:
        """Loads the library; the driver counts how often it is opened."""
        with _refusals():
            pynvml.nvmlInit()
        self._open = True

    def gpus(self) -> Sequence[GpuDevice]:
        """In the driver's order; a partitioned GPU is given by its instances. One that the driver has lost, or does not
        let us see, is left out: it need not be ours."""
        found: list[GpuDevice] = []
        with _refusals():
            count = pynvml.nvmlDeviceGetCount()
        refused: DriverError | None = None
        for index in range(count):
            try:
                with _refusals():
                    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                    board = self._listed(handle, None)
                    found += [self._listed(instance, board) for instance in _instances(handle)] or [board]
            except DriverError as refusal:
                refused = refusal
        if refused is not None and not found:
            raise refused
        return found

    def call(self, function: str, uuid: str, *arguments: int) -> NvmlValue:
        """See the protocol."""
        wanted = getattr(pynvml, function, None)
        if wanted is None:
            raise DriverError(f"the installed nvidia-ml-py does not know {function}", lasting=True)
        with _refusals():
            try:
                return _plain(wanted(self._handle(uuid), *arguments))
            except pynvml.NVMLError_NotFound:
                if function not in _NOTHING_IS_NOT_FOUND:
                    raise
                return []

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        """See the protocol."""
        with _refusals():
            found = pynvml.nvmlDeviceGetFieldValues(self._handle(uuid), [(field_id, scope)])[0]
            if found.nvmlReturn != pynvml.NVML_SUCCESS:
                raise pynvml.NVMLError(found.nvmlReturn)
        if found.valueType in _NARROW and field_id not in _GAUGES:
            raise DriverError("the driver counts it in 32 bits, which wrap too often to be read", lasting=True)
        return float(getattr(found.value, _MEMBERS[found.valueType]))

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        """See the protocol."""
        with _refusals():
            if gpu.uuid not in self._samples:
                board = self._handle(gpu.board)
                if not pynvml.nvmlGpmQueryDeviceSupport(board).isSupportedDevice:
                    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
                instance = pynvml.nvmlDeviceGetGpuInstanceId(self._handle(gpu.uuid)) if gpu.is_instance else None
                self._samples[gpu.uuid] = GpmSamples(board, instance)
            return self._samples[gpu.uuid].since_last(metrics)

    def driver_version(self) -> str:
        """As "570.86.15". Raises DriverError."""
        with _refusals():
            return _text(pynvml.nvmlSystemGetDriverVersion())

    def close(self) -> None:
        """Gives back what was taken, as far as the driver is still there to take it."""
        if not self._open:
            return
        self._open = False
        samples, self._samples, self._handles = self._samples, {}, {}
        for each in samples.values():
            _let_go(each.close)
        _let_go(pynvml.nvmlShutdown)

    def _listed(self, handle: Any, board: GpuDevice | None) -> GpuDevice:
        uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
        self._handles[uuid] = handle
        if board is not None:
            return GpuDevice(uuid, board.uuid, board.name, board.bus)
        bus = _text(pynvml.nvmlDeviceGetPciInfo(handle).busId).lower()
        # "00000000:C1:00.0": the domain has eight digits, of which everybody else writes four.
        return GpuDevice(uuid, uuid, _text(pynvml.nvmlDeviceGetName(handle)), bus[4:].partition(".")[0])

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            raise DriverError("the driver was not asked which GPUs there are", lost=True)
        return self._handles[uuid]


@contextmanager
def _refusals() -> Iterator[None]:
    """Makes NVML's errors refusals."""
    try:
        yield
    except pynvml.NVMLError as error:
        code = getattr(error, "value", None)
        words = _WORDS.get(code, f"the driver did not answer (NVML: {error})")
        raise DriverError(words, lasting=code in _LASTING, lost=code in _LOST) from error
    except pynvml.NVMLLibraryMismatchError as error:
        raise DriverError(_WORDS[pynvml.NVML_ERROR_FUNCTION_NOT_FOUND], lasting=True) from error


def _let_go(give_back: Callable[[], object]) -> None:
    try:
        give_back()
    except pynvml.NVMLError:
        return  # a driver that is gone has let go of everything by itself


def _instances(board: Any) -> Iterator[Any]:
    """Handles of the instances of a partitioned GPU; none of a whole one, or of one that cannot be partitioned."""
    try:
        if pynvml.nvmlDeviceGetMigMode(board)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return
        most = pynvml.nvmlDeviceGetMaxMigDeviceCount(board)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NoPermission):
        return
    for index in range(most):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(board, index)
        except pynvml.NVMLError_NotFound:
            continue  # instances need not be numbered without gaps


def _plain(value: Any) -> NvmlValue:
    """ctypes' structures, and pynvml's objects in their place, as mappings of their numbers."""
    if isinstance(value, list | tuple):
        return [_fields(one) for one in value]
    if isinstance(value, int | str):
        return value
    return _text(value) if isinstance(value, bytes) else _fields(value)


def _fields(value: Any) -> dict[str, int]:
    names = [name for name, *_ in value._fields_] if isinstance(value, ctypes.Structure) else list(vars(value))
    pairs = ((name, getattr(value, name)) for name in names)
    return {name: number for name, number in pairs if isinstance(number, int)}


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
