"""A fake machine: files under a temporary root in place of /proc and /sys, and a manual clock."""

from collections.abc import Mapping
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

    def add(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            self.write(path, text)


def values(sampler) -> dict[str, float]:
    return {reading.name: reading.value for reading in sampler.read()}
