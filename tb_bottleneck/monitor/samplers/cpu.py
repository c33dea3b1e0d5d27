"""Samplers of the CPU: busy and usable cores, throttling, pressure, run queue, and facts about thread pools."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.monitor.facts.cpu import cpu_groups, usable_cores
from tb_bottleneck.monitor.samplers.io import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

# The parts of a core's time. Guest time is included in user and nice. In stolen time, the hypervisor ran other virtual
# machines on the core, so the core of this machine was not busy.
_BUSY = ("user", "nice", "system", "irq", "softirq")
_IDLE = ("idle", "iowait", "steal")


def _core_times() -> Sequence[Any]:
    return psutil.cpu_times(percpu=True)


class Cores:
    """Measures the busy cores of the machine since the last reading."""

    every_s = 1.0

    def __init__(self, times: Callable[[], Sequence[Any]] = _core_times) -> None:
        self._times = times
        self._last: list[tuple[float, float]] = []

    def read(self) -> Iterator[Reading]:
        """Yields the number of busy cores, and the busy fraction (0 to 1) of the busiest core; nothing at the first
        reading."""
        last, self._last = self._last, [(_sum(core, _BUSY), _sum(core, _IDLE)) for core in self._times()]
        if len(last) != len(self._last):
            return  # cores were added or removed
        shares = []
        for (busy_before, idle_before), (busy_now, idle_now) in zip(last, self._last, strict=True):
            busy, idle = busy_now - busy_before, max(idle_now - idle_before, 0.0)  # idle time may decrease a little
            if busy < 0 or busy + idle <= 0:
                return  # the system counts in ticks, and no tick has passed since the last reading
            shares.append(busy / (busy + idle))
        if shares:
            yield Reading("cpu_busy_cores", sum(shares))
            yield Reading("cpu_top_core", max(shares))

    def missing(self) -> Mapping[str, str]:
        """Returns {}: the signals are available on every system that psutil supports."""
        return {}

    def close(self) -> None:
        """Does nothing."""


class UsableCores:
    """Reads the number of cores that this process may use. The CPU quota may change while the process runs."""

    every_s = 60.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def read(self) -> Iterator[Reading]:
        """Yields the number of usable cores."""
        yield Reading("cpu_usable_cores", float(usable_cores(self._root)))

    def missing(self) -> Mapping[str, str]:
        """Returns {}: the signal is available on every system."""
        return {}

    def close(self) -> None:
        """Does nothing."""


def _sum(core: Any, fields: tuple[str, ...]) -> float:
    return sum(float(getattr(core, field, 0.0)) for field in fields)


_TOTAL, _PERIODS = "quota_throttled_total", "quota_throttled_periods"
_NO_GROUP = "no control group with a CPU controller was found for this process in /proc/self/cgroup and /sys/fs/cgroup"
_NO_QUOTA = "this process has no CPU quota, so it has no quota periods"
_KEYS = ("nr_periods", "nr_throttled", "throttled_usec", "throttled_time")


class Quota:
    """Measures how long the CPU quota throttled this process, and the fraction of quota periods with throttling. Linux
    only.

    The figures come from `cpu.stat` of the process's control group and of every parent. Version 2 of control groups
    counts `throttled_usec`, version 1 counts `throttled_time` in nanoseconds. Both are sums over the cores, so they can
    grow faster than time (Linux documentation, scheduler/sched-bwc)."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._last: dict[str, float] = {}

    def read(self) -> Iterator[Reading]:
        """Yields the total throttled time in ns and, from the second reading on, the fraction (0 to 1) of periods with
        throttling."""
        counted = self._counted()
        if not counted:
            return
        last, self._last = self._last, counted
        yield Reading(_TOTAL, counted["ns"])
        periods = counted["nr_periods"] - last.get("nr_periods", counted["nr_periods"])
        throttled = counted["nr_throttled"] - last.get("nr_throttled", counted["nr_throttled"])
        if periods > 0 and throttled >= 0:
            yield Reading(_PERIODS, min(throttled / periods, 1.0))

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason}. Without a control group both signals are missing, without a quota only the fraction
        of periods."""
        counted = self._counted()
        if not counted:
            return dict.fromkeys((_TOTAL, _PERIODS), _NO_GROUP)
        return {} if counted["nr_periods"] else {_PERIODS: _NO_QUOTA}

    def close(self) -> None:
        """Does nothing."""

    def _counted(self) -> dict[str, float]:
        """Returns `nr_periods`, `nr_throttled` and `ns` (throttled time). Each is summed over the control group and its
        parents, because each of these may have a quota. Empty if no file can be read."""
        totals: dict[str, float] = {}
        for folder in cpu_groups(self._root):
            try:
                lines = (folder / "cpu.stat").read_text().splitlines()
            except OSError:
                continue
            stat = dict(line.split()[:2] for line in lines if len(line.split()) == 2)
            numbers = {key: int(stat[key]) for key in _KEYS if stat.get(key, "").isdecimal()}
            if "nr_periods" not in numbers:
                continue  # the root group of version 2 reports CPU usage, but no periods
            ns = numbers.get("throttled_usec", 0) * NS_PER_US + numbers.get("throttled_time", 0)
            for key, value in (("nr_periods", numbers["nr_periods"]), ("ns", ns)):
                totals[key] = totals.get(key, 0.0) + value
            totals["nr_throttled"] = totals.get("nr_throttled", 0.0) + numbers.get("nr_throttled", 0)
        return totals


_FILES = {"cpu_pressure": "cpu", "io_pressure": "io", "memory_pressure": "memory"}
_TOTAL_US = re.compile(r"^some .*\btotal=(\d+)$", re.MULTILINE)
_RUNNING = re.compile(r"^procs_running (\d+)$", re.MULTILINE)
_US_PER_S = 1e6
_NO_PRESSURE = "the kernel has no /proc/pressure: it needs Linux 4.20 or newer, booted with psi=1 if off by default"
_NO_QUEUE = "the system has no run queue length: only Linux has one (procs_running in /proc/stat)"


class Pressure:
    """Reads Linux's pressure stall information: the fraction of time in which at least one thread on the machine waits
    for a resource.

    The resources are cores, storage and memory. The first line of each file in /proc/pressure has the microseconds in
    which some thread waited (Linux documentation, accounting/psi). The pressure of a single control group is not
    read."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._folder = root / "proc/pressure"
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """Yields for each resource the fraction (0 to 1) of the time since the last reading in which some thread waited
        for the resource; nothing at the first reading."""
        for name, rate in self._rates.per_second(self._totals_us()).items():
            yield Reading(name, min(rate / _US_PER_S, 1.0))

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for the signals without a file in /proc/pressure."""
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
    """Reads the number of runnable threads of the whole machine, except the thread that takes the reading. Linux only.

    The figure is `procs_running` of /proc/stat."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._file = root / "proc/stat"

    def read(self) -> Iterator[Reading]:
        """Yields one reading: the present number of runnable threads, not a mean."""
        match = _RUNNING.search(_text(self._file))
        if match:
            yield Reading("run_queue", max(float(match[1]) - 1, 0.0))

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} if /proc/stat does not have the number, otherwise {}."""
        return {} if _RUNNING.search(_text(self._file)) else {"run_queue": _NO_QUEUE}

    def close(self) -> None:
        """Does nothing."""


def _text(path: Path) -> str:
    """Returns the text of the file `path`, or "" if it cannot be read, as on other systems and with older kernels."""
    try:
        return path.read_text()
    except OSError:
        return ""


_MAX_LENGTH = 40  # characters of a name or version


def thread_pool_facts() -> dict[str, object]:
    """Returns {"blas_pools": [...]}, the CPU thread pools of libraries in this process (for example of numpy and torch)
    as JSON values; {} if there are none.

    `blas_pools` has one dict per thread pool: {"api": "blas" or "openmp", "library", "threads", "version"}. The path of
    the library is not included.

    The search visits all loaded libraries, which takes some milliseconds, so call this function only once. May raise
    what threadpoolctl raises.
    """
    from threadpoolctl import threadpool_info

    pools = [
        {
            "api": _short(pool.get("user_api")),
            "library": _short(pool.get("internal_api")),
            "threads": int(pool.get("num_threads") or 0),
            "version": _short(pool.get("version")),
        }
        for pool in threadpool_info()
    ]
    return {"blas_pools": pools} if pools else {}


def _short(value: object) -> str:
    return str(value)[:_MAX_LENGTH] if value else "unknown"
