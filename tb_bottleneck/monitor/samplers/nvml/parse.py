"""Parses NVML's results. A result without the documented structure raises DriverError."""

from collections.abc import Mapping, Sequence

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlDriver, NvmlValue


def call_newest(driver: NvmlDriver, uuid: str, newer: str, older: str) -> NvmlValue:
    """Calls `newer`, or `older` if `newer` is unknown or permanently refused. Raises DriverError."""
    try:
        return driver.call(newer, uuid)
    except DriverError as error:
        if not error.lasting:
            raise
    return driver.call(older, uuid)


def as_number(answer: NvmlValue) -> float:
    """Returns a numeric result. Raises DriverError."""
    if isinstance(answer, int):
        return float(answer)
    raise DriverError("the driver's result is not a number", lasting=True)


def field_of(answer: NvmlValue, name: str) -> float:
    """Returns a field of a structure. Raises DriverError."""
    if isinstance(answer, Mapping) and name in answer:
        return float(answer[name])
    raise DriverError(f"the driver's result has no field {name}", lasting=True)


def as_rows(answer: NvmlValue) -> Sequence[Mapping[str, int]]:
    """Returns a result that is a list. Raises DriverError."""
    if isinstance(answer, int | str | Mapping):
        raise DriverError("the driver's result is not a list", lasting=True)
    return answer
