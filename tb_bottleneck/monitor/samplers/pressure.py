"""How much the machine's threads wait: for cores, storage and memory, and in the run queue. Linux only.

Pressure is /proc/pressure/*, whose first line tells the microseconds in which some thread waited (Linux documentation,
accounting/psi); the run queue is `procs_running` of /proc/stat. Left out: the pressure of a control group of its own.
"""

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

_FILES = {"cpu_pressure": "cpu", "io_pressure": "io", "memory_pressure": "memory"}
_TOTAL_US = re.compile(r"^some .*\btotal=(\d+)$", re.MULTILINE)
_RUNNING = re.compile(r"^procs_running (\d+)$", re.MULTILINE)
_US_PER_S = 1e6
_NO_PRESSURE = (
    "the kernel tells no pressure here: /proc/pressure needs Linux 4.20 or newer, started with psi=1 where off"
)
_NO_QUEUE = "the system tells no run queue: only Linux does, as procs_running in /proc/stat"


class Pressure:
    """Shares of time in which some thread of the machine waited."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._folder = root / "proc/pressure"
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """The first reading gives nothing."""
        for name, rate in self._rates.per_second(self._totals_us()).items():
            yield Reading(name, min(rate / _US_PER_S, 1.0))

    def missing(self) -> Mapping[str, str]:
        """What /proc/pressure does not hold."""
        there = self._totals_us()
        return {name: _NO_PRESSURE for name in _FILES if name not in there}

    def close(self) -> None:
        """Nothing is open."""

    def _totals_us(self) -> dict[str, float]:
        totals = {}
        for name, file in _FILES.items():
            found = _TOTAL_US.search(_text(self._folder / file))
            if found:
                totals[name] = float(found[1])
        return totals


class RunQueue:
    """Threads of the whole machine that run or want to run, without the one that asks."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._file = root / "proc/stat"

    def read(self) -> Iterator[Reading]:
        """One reading: the queue of this moment, not a mean."""
        found = _RUNNING.search(_text(self._file))
        if found:
            yield Reading("run_queue", max(float(found[1]) - 1, 0.0))

    def missing(self) -> Mapping[str, str]:
        """Where there is no /proc/stat."""
        return {} if _RUNNING.search(_text(self._file)) else {"run_queue": _NO_QUEUE}

    def close(self) -> None:
        """Nothing is open."""


def _text(path: Path) -> str:
    """The file's text, empty where there is none: another system, or a kernel that refuses to tell."""
    try:
        return path.read_text()
    except OSError:
        return ""
