"""NVML's answers taken apart: what is not of the documented shape is refused, not guessed."""

from collections.abc import Mapping, Sequence

from tb_bottleneck.monitor.samplers.gpu_driver import Refused
from tb_bottleneck.monitor.samplers.nvml.driver import Answer, NvmlDriver


def first_known(driver: NvmlDriver, uuid: str, newer: str, older: str) -> Answer:
    """What `newer` answers, or `older` where that name is not known or refused for good. Raises Refused."""
    try:
        return driver.call(newer, uuid)
    except Refused as refusal:
        if not refusal.lasting:
            raise
    return driver.call(older, uuid)


def number_of(answer: Answer) -> float:
    """An answer that is to be a number. Raises Refused."""
    if isinstance(answer, int):
        return float(answer)
    raise Refused("the driver answered something that is no number", lasting=True)


def part(answer: Answer, name: str) -> float:
    """A field of an answer that is to be a structure. Raises Refused."""
    if isinstance(answer, Mapping) and name in answer:
        return float(answer[name])
    raise Refused(f"the driver's answer has no field {name}", lasting=True)


def rows(answer: Answer) -> Sequence[Mapping[str, int]]:
    """An answer that is to be a list. Raises Refused."""
    if isinstance(answer, int | str | Mapping):
        raise Refused("the driver answered something that is no list", lasting=True)
    return answer
