"""Pressure stall information of the machine (cores, storage, memory), and its run queue. Linux only.

The first line of each file in /proc/pressure has the microseconds in which some thread waited (Linux documentation,
accounting/psi). The run queue is `procs_running` of /proc/stat. The pressure of a single control group is not read.
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
_NO_PRESSURE = "the kernel has no /proc/pressure: it needs Linux 4.20 or newer, booted with psi=1 if off by default"
_NO_QUEUE = "the system has no run queue length: only Linux has one (procs_running in /proc/stat)"


class Pressure:
    """Shares of time with at least one waiting thread on the machine."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._folder = root / "proc/pressure"
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """Yields nothing at the first reading."""
        for name, rate in self._rates.per_second(self._totals_us()).items():
            yield Reading(name, min(rate / _US_PER_S, 1.0))

    def missing(self) -> Mapping[str, str]:
        """Returns the signals without a file in /proc/pressure."""
        available = self._totals_us()
        return {name: _NO_PRESSURE for name in _FILES if name not in available}

    def close(self) -> None:
        """Does nothing."""

    def _totals_us(self) -> dict[str, float]:
        totals = {}
        for name, file in _FILES.items():
            match = _TOTAL_US.search(_text(self._folder / file))
            if match:
                totals[name] = float(match[1])
        return totals


class RunQueue:
    """Runnable threads of the whole machine, except the thread that takes the reading."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._file = root / "proc/stat"

    def read(self) -> Iterator[Reading]:
        """Yields one reading: the present queue, not a mean."""
        match = _RUNNING.search(_text(self._file))
        if match:
            yield Reading("run_queue", max(float(match[1]) - 1, 0.0))

    def missing(self) -> Mapping[str, str]:
        """Returns the signal if there is no /proc/stat."""
        return {} if _RUNNING.search(_text(self._file)) else {"run_queue": _NO_QUEUE}

    def close(self) -> None:
        """Does nothing."""


def _text(path: Path) -> str:
    """Returns the file's text, or "" if it cannot be read: another system, or a kernel without it."""
    try:
        return path.read_text()
    except OSError:
        return ""
