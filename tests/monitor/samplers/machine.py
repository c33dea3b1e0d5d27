"""A made-up machine: files under a scratch root that stand for /proc and /sys, and a clock that is moved by hand."""

from pathlib import Path


class Machine:
    """Files by path, and `now` in seconds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


def values(sampler) -> dict[str, float]:
    return {reading.name: reading.value for reading in sampler.read()}
