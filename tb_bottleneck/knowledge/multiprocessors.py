"""How many multiprocessors a device has, by its name in the device table."""

from functools import cache

from tb_bottleneck.knowledge.catalogue import load


def multiprocessors_of(gpu: str) -> int | None:
    """Of the device with this name in gpus.toml; None where nobody has written it down."""
    return _counts().get(gpu)


@cache
def _counts() -> dict[str, int]:
    return {name: number for entry in load("multiprocessors.toml")["count"] for name, number in entry["of"].items()}
