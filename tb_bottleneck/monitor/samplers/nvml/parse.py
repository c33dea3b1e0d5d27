"""NVML's answers taken apart: what is not of the documented shape is refused, not guessed."""

from collections.abc import Mapping, Sequence

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError
from tb_bottleneck.monitor.samplers.nvml.driver import NvmlDriver, NvmlValue


def call_newest(driver: NvmlDriver, uuid: str, newer: str, older: str) -> NvmlValue:
    """What `newer` answers, or `older` where that name is not known or refused for good. Raises DriverError."""
    try:
        return driver.call(newer, uuid)
    except DriverError as refusal:
        if not refusal.lasting:
            raise
    return driver.call(older, uuid)


def as_number(answer: NvmlValue) -> float:
    """An answer that is to be a number. Raises DriverError."""
    if isinstance(answer, int):
        return float(answer)
    raise DriverError("the driver answered something that is no number", lasting=True)


def field_of(answer: NvmlValue, name: str) -> float:
    """A field of an answer that is to be a structure. Raises DriverError."""
    if isinstance(answer, Mapping) and name in answer:
        return float(answer[name])
    raise DriverError(f"the driver's answer has no field {name}", lasting=True)


def as_rows(answer: NvmlValue) -> Sequence[Mapping[str, int]]:
    """An answer that is to be a list. Raises DriverError."""
    if isinstance(answer, int | str | Mapping):
        raise DriverError("the driver answered something that is no list", lasting=True)
    return answer
