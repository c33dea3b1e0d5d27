"""The NVML binding with replaced functions of pynvml: structures become numbers, errors become DriverErrors."""

import ctypes
from types import SimpleNamespace

import pynvml
import pytest

from tb_bottleneck.monitor.nvml.binding import Nvml
from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice

UUID = "GPU-aaaaaaaa-0000"
HANDLE = object()


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    pretend(
        monkeypatch,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: HANDLE,
        nvmlDeviceGetUUID=lambda handle: UUID,
        nvmlDeviceGetName=lambda handle: b"NVIDIA H200",
        nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=b"00000001:C1:00.0"),
        nvmlDeviceGetMigMode=raising(pynvml.NVML_ERROR_NOT_SUPPORTED),
    )
    opened = Nvml()
    opened.open()
    return opened


def pretend(monkeypatch: pytest.MonkeyPatch, **functions: object) -> None:
    for name, function in functions.items():
        monkeypatch.setattr(pynvml, name, function)


def raising(code: int):
    def fail(*_: object) -> None:
        raise pynvml.NVMLError(code)

    return fail


def test_a_gpu_is_listed_with_its_place_on_the_bus(nvml: Nvml) -> None:
    assert nvml.gpus() == [GpuDevice(UUID, UUID, "NVIDIA H200", "0001:c1:00")]


def test_a_partitioned_gpu_is_listed_by_its_instances(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    def instance(board: object, index: int) -> str:
        if index == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"instance {index}"

    pretend(
        monkeypatch,
        nvmlDeviceGetMigMode=lambda handle: [pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE],
        nvmlDeviceGetMaxMigDeviceCount=lambda handle: 3,
        nvmlDeviceGetMigDeviceHandleByIndex=instance,
        nvmlDeviceGetUUID=lambda handle: UUID if handle is HANDLE else f"MIG-{handle}",
    )
    assert [(gpu.uuid, gpu.board, gpu.is_instance) for gpu in nvml.gpus()] == [
        ("MIG-instance 0", UUID, True),
        ("MIG-instance 2", UUID, True),
    ]


def test_losing_another_gpu_does_not_lose_our_own(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(index: int) -> object:
        if index == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return HANDLE

    pretend(monkeypatch, nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=handle)
    assert [gpu.uuid for gpu in nvml.gpus()] == [UUID]
    pretend(monkeypatch, nvmlDeviceGetCount=lambda: 1)
    with pytest.raises(DriverError, match="lost the GPU"):
        nvml.gpus()


def test_structures_and_lists_become_numbers(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    utilisation = pynvml.c_nvmlUtilization_t(gpu=97, memory=41)
    process = pynvml.nvmlFriendlyObject({"pid": 7, "usedGpuMemory": None})
    pretend(
        monkeypatch,
        nvmlDeviceGetUtilizationRates=lambda handle: utilisation,
        nvmlDeviceGetComputeRunningProcesses_v3=lambda handle: [process],
        nvmlDeviceGetPowerUsage=lambda handle: 652300,
    )
    nvml.gpus()
    assert nvml.call("nvmlDeviceGetUtilizationRates", UUID) == {"gpu": 97, "memory": 41}
    assert nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", UUID) == [{"pid": 7}]
    assert nvml.call("nvmlDeviceGetPowerUsage", UUID) == 652300


@pytest.mark.parametrize(
    ("code", "lasting", "lost"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, True, False),
        (pynvml.NVML_ERROR_NO_PERMISSION, True, False),
        (pynvml.NVML_ERROR_TIMEOUT, False, False),
        (pynvml.NVML_ERROR_GPU_IS_LOST, False, True),
        (pynvml.NVML_ERROR_UNINITIALIZED, False, True),
        (9999, False, False),
    ],
)
def test_errors_become_refusals(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, code: int, lasting: bool, lost: bool
) -> None:
    pretend(monkeypatch, nvmlDeviceGetPowerUsage=raising(code))
    nvml.gpus()
    with pytest.raises(DriverError) as refusal:
        nvml.call("nvmlDeviceGetPowerUsage", UUID)
    assert (refusal.value.lasting, refusal.value.lost) == (lasting, lost)


def test_a_call_that_this_pynvml_lacks_is_refused_for_good(nvml: Nvml) -> None:
    with pytest.raises(DriverError, match="has no nvmlDeviceGetWhatever"):
        nvml.call("nvmlDeviceGetWhatever", UUID)


def test_no_process_samples_are_an_empty_list(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, nvmlDeviceGetProcessUtilization=raising(pynvml.NVML_ERROR_NOT_FOUND))
    nvml.gpus()
    assert nvml.call("nvmlDeviceGetProcessUtilization", UUID, 0) == []


def field(kind: int, code: int = pynvml.NVML_SUCCESS, **value: int):
    filled = pynvml.c_nvmlFieldValue_t(valueType=kind, nvmlReturn=code)
    for member, number in value.items():
        setattr(filled.value, member, number)
    return lambda handle, fields: [filled]


def test_a_counter_of_64_bits_is_read(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = field(pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, ullVal=1 << 40)
    pretend(monkeypatch, nvmlDeviceGetFieldValues=wide)
    nvml.gpus()
    assert nvml.field(UUID, 197) == 1 << 40


def test_a_counter_of_32_bits_would_wrap_twelve_times_a_second_so_it_is_refused(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, nvmlDeviceGetFieldValues=field(pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, uiVal=12345))
    nvml.gpus()
    with pytest.raises(DriverError, match="32 bits"):
        nvml.field(UUID, 197)
    assert nvml.field(UUID, pynvml.NVML_FI_DEV_MEMORY_TEMP) == 12345, "a temperature is no counter"


def test_a_field_has_an_error_of_its_own(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = field(pynvml.NVML_VALUE_TYPE_DOUBLE, pynvml.NVML_ERROR_NOT_SUPPORTED)
    pretend(monkeypatch, nvmlDeviceGetFieldValues=refused)
    nvml.gpus()
    with pytest.raises(DriverError) as refusal:
        nvml.field(UUID, 138, 0xFFFFFFFF)
    assert refusal.value.lasting


def test_without_a_library_the_words_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, nvmlInit=raising(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND))
    with pytest.raises(DriverError, match="no NVIDIA driver was found"):
        Nvml().open()


def test_closing_a_driver_that_is_gone_says_nothing(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, nvmlShutdown=raising(pynvml.NVML_ERROR_UNINITIALIZED))
    nvml.close()
    nvml.close()


class Metrics:
    """The part of NVML that takes and compares samples; counts samples that are not freed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, supported: bool = True) -> None:
        self.held = 0
        self.fails = 0
        pretend(
            monkeypatch,
            nvmlGpmQueryDeviceSupport=lambda handle: SimpleNamespace(isSupportedDevice=int(supported)),
            nvmlGpmSampleAlloc=self.alloc,
            nvmlGpmSampleFree=self.free,
            nvmlGpmSampleGet=self.get,
            nvmlGpmMetricsGet=self.compare,
        )

    def alloc(self) -> object:
        self.held += 1
        return pynvml.c_nvmlGpmSample_t()

    def free(self, sample: object) -> None:
        self.held -= 1

    def get(self, handle: object, sample: object) -> None:
        if self.fails:
            raise pynvml.NVMLError(self.fails)

    def compare(self, request: ctypes.Structure) -> None:
        for index in range(request.numMetrics):
            request.metrics[index].value = 10.0 * request.metrics[index].metricId
            known = request.metrics[index].metricId != 12
            request.metrics[index].nvmlReturn = pynvml.NVML_SUCCESS if known else pynvml.NVML_ERROR_NOT_SUPPORTED


def test_metrics_come_with_the_second_sample_and_samples_are_given_back(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics(monkeypatch)
    gpu = nvml.gpus()[0]
    assert nvml.performance(gpu, (2, 3, 12)) == {}
    for _ in range(5):
        assert nvml.performance(gpu, (2, 3, 12)) == {2: 20.0, 3: 30.0}
    assert metrics.held == 2
    nvml.close()
    assert metrics.held == 0


def test_a_gpu_before_hopper_has_none(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    Metrics(monkeypatch, supported=False)
    with pytest.raises(DriverError) as refusal:
        nvml.performance(nvml.gpus()[0], (2,))
    assert refusal.value.lasting


def test_a_permission_that_goes_away_while_it_runs_leaks_nothing(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, the driver once refused after some minutes of correct results."""
    metrics = Metrics(monkeypatch)
    gpu = nvml.gpus()[0]
    nvml.performance(gpu, (2,))
    nvml.performance(gpu, (2,))
    metrics.fails = pynvml.NVML_ERROR_NO_PERMISSION
    for _ in range(3):
        with pytest.raises(DriverError, match="administrators"):
            nvml.performance(gpu, (2,))
    nvml.close()
    assert metrics.held == 0
