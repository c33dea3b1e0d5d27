"""The implementation of NvmlDriver with pynvml (of the package nvidia-ml-py)."""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pynvml

from tb_bottleneck.monitor.nvml.readings import GpmSamples, NvmlValue
from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice

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
_TEXTS = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "this GPU, or this partition of it, does not support it in NVML",
    pynvml.NVML_ERROR_NO_PERMISSION: "the driver reports it to administrators only (NVML: insufficient permissions)",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver is older than the function for it",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver was found: its library libnvidia-ml is not on this system",
    pynvml.NVML_ERROR_GPU_IS_LOST: "the driver has lost the GPU (NVML: GPU is lost)",
}
_NARROW = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT,
    pynvml.NVML_VALUE_TYPE_SIGNED_INT,
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT,
}
# The error "not found" of these functions means an empty result.
_EMPTY_IF_NOT_FOUND = {"nvmlDeviceGetProcessUtilization"}
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
    """The library NVML, with the interface of a GPU driver. Not thread-safe."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        self._samples: dict[str, GpmSamples] = {}
        self._open = False

    def open(self) -> None:
        """Loads and initialises the library. Raises DriverError. NVML counts its initialisations, so other code in this
        process may use NVML, too."""
        with _driver_errors():
            pynvml.nvmlInit()
        self._open = True

    def gpus(self) -> Sequence[GpuDevice]:
        """Returns the GPUs in the driver's order. A partitioned GPU is replaced by its instances. A GPU that is lost or
        not accessible is left out, because this process need not use it. Raises DriverError if the GPUs cannot be
        listed, or if errors leave no GPU."""
        gpus: list[GpuDevice] = []
        with _driver_errors():
            count = pynvml.nvmlDeviceGetCount()
        last_error: DriverError | None = None
        for index in range(count):
            try:
                with _driver_errors():
                    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                    board = self._describe(handle, None)
                    gpus += [self._describe(instance, board) for instance in _instances(handle)] or [board]
            except DriverError as error:
                last_error = error
        if last_error is not None and not gpus:
            raise last_error
        return gpus

    def call(self, function: str, uuid: str, *arguments: int) -> NvmlValue:
        """Returns the result of pynvml's `function` for the GPU with this `uuid`. Raises DriverError."""
        method = getattr(pynvml, function, None)
        if method is None:
            raise DriverError(f"the installed nvidia-ml-py has no {function}", lasting=True)
        with _driver_errors():
            try:
                return _plain(method(self._handle(uuid), *arguments))
            except pynvml.NVMLError_NotFound:
                if function not in _EMPTY_IF_NOT_FOUND:
                    raise
                return []

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        """Returns the value of the NVML field `field_id` for the GPU with this `uuid`. Raises DriverError, for example
        if the field is a 32-bit counter."""
        with _driver_errors():
            field = pynvml.nvmlDeviceGetFieldValues(self._handle(uuid), [(field_id, scope)])[0]
            if field.nvmlReturn != pynvml.NVML_SUCCESS:
                raise pynvml.NVMLError(field.nvmlReturn)
        if field.valueType in _NARROW and field_id not in _GAUGES:
            raise DriverError("the driver's counter has 32 bits and overflows too often", lasting=True)
        return float(getattr(field.value, _MEMBERS[field.valueType]))

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        """Returns the values of the GPM performance metrics with the ids `metrics`, by metric id. A value is a mean
        since the last call; the result is empty at the first call. Raises DriverError."""
        with _driver_errors():
            if gpu.uuid not in self._samples:
                board = self._handle(gpu.board)
                if not pynvml.nvmlGpmQueryDeviceSupport(board).isSupportedDevice:
                    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
                instance = pynvml.nvmlDeviceGetGpuInstanceId(self._handle(gpu.uuid)) if gpu.is_instance else None
                self._samples[gpu.uuid] = GpmSamples(board, instance)
            return self._samples[gpu.uuid].since_last(metrics)

    def driver_version(self) -> str:
        """Returns the version of the driver, such as "570.86.15". Raises DriverError."""
        with _driver_errors():
            return _text(pynvml.nvmlSystemGetDriverVersion())

    def close(self) -> None:
        """Releases all resources. Errors of a lost driver are ignored."""
        if not self._open:
            return
        self._open = False
        samples, self._samples, self._handles = self._samples, {}, {}
        for gpu_samples in samples.values():
            _release(gpu_samples.close)
        _release(pynvml.nvmlShutdown)

    def _describe(self, handle: Any, board: GpuDevice | None) -> GpuDevice:
        uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
        self._handles[uuid] = handle
        if board is not None:
            return GpuDevice(uuid, board.uuid, board.name, board.bus)
        bus = _text(pynvml.nvmlDeviceGetPciInfo(handle).busId).lower()
        # "00000000:C1:00.0": NVML writes the domain with eight digits, other tools with four.
        return GpuDevice(uuid, uuid, _text(pynvml.nvmlDeviceGetName(handle)), bus[4:].partition(".")[0])

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            raise DriverError("the GPUs have not been listed yet", lost=True)
        return self._handles[uuid]


@contextmanager
def _driver_errors() -> Iterator[None]:
    """A context that converts NVML's errors to DriverError."""
    try:
        yield
    except pynvml.NVMLError as error:
        code = getattr(error, "value", None)
        text = _TEXTS.get(code, f"the driver did not answer (NVML: {error})")
        raise DriverError(text, lasting=code in _LASTING, lost=code in _LOST) from error
    except pynvml.NVMLLibraryMismatchError as error:
        raise DriverError(_TEXTS[pynvml.NVML_ERROR_FUNCTION_NOT_FOUND], lasting=True) from error


def _release(function: Callable[[], object]) -> None:
    try:
        function()
    except pynvml.NVMLError:
        return  # a lost driver has released everything


def _instances(board: Any) -> Iterator[Any]:
    """Yields handles of the instances of the GPU `board`; none if the GPU is not partitioned."""
    try:
        if pynvml.nvmlDeviceGetMigMode(board)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return
        count = pynvml.nvmlDeviceGetMaxMigDeviceCount(board)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NoPermission):
        return
    for index in range(count):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(board, index)
        except pynvml.NVMLError_NotFound:
            continue  # the numbers of instances may have gaps


def _plain(value: Any) -> NvmlValue:
    """Returns `value` without types of ctypes and pynvml. A structure becomes a dict of its fields that are integers,
    and bytes become text."""
    if isinstance(value, list | tuple):
        return [_fields(item) for item in value]
    if isinstance(value, int | str):
        return value
    return _text(value) if isinstance(value, bytes) else _fields(value)


def _fields(value: Any) -> dict[str, int]:
    names = [name for name, *_ in value._fields_] if isinstance(value, ctypes.Structure) else list(vars(value))
    pairs = ((name, getattr(value, name)) for name in names)
    return {name: number for name, number in pairs if isinstance(number, int)}


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
