"""The training process's own cores, threads, involuntary context switches, and waits for a core.

On Linux /proc/PID/schedstat has the time in which the main thread ran, and in which it waited for a core, in ns (Linux
documentation, scheduler/sched-stats). A kernel built without this information prints zeros.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_SWITCHES, _CORE_WAIT = "involuntary_switches_total", "core_wait_total"


class OwnProcess:
    """This process without its children."""

    every_s = 1.0

    def __init__(
        self, clock: Clock = time.monotonic, cpu_seconds: Clock = time.process_time, root: Path = Path("/")
    ) -> None:
        self._rates = Rates(clock)
        self._cpu_seconds = cpu_seconds
        self._scheduler = root / f"proc/{os.getpid()}/schedstat"

    def read(self) -> Iterator[Reading]:
        """Yields the cores from the second reading on."""
        for cores in self._rates.per_second({"cpu": self._cpu_seconds()}).values():
            yield Reading("process_cores", cores)
        yield Reading("process_threads", float(psutil.Process().num_threads()))
        if resource is not None:
            yield Reading(_SWITCHES, float(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw))
        waited = self._waited_ns()
        if waited is not None:
            yield Reading(_CORE_WAIT, waited)

    def missing(self) -> Mapping[str, str]:
        """Returns the context switches, except on Unix, and the waits for a core, except on Linux."""
        missing = {} if resource is not None else {_SWITCHES: "only Unix counts them per process"}
        if self._waited_ns() is None:
            missing[_CORE_WAIT] = "the kernel does not count it: only Linux has /proc/PID/schedstat"
        return missing

    def close(self) -> None:
        """Does nothing."""

    def _waited_ns(self) -> float | None:
        try:
            ran, waited = self._scheduler.read_text().split()[:2]
            return float(waited) if float(ran) > 0 else None
        except (OSError, ValueError):
            return None
