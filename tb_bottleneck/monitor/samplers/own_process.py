"""The training process's own cores, threads, involuntary context switches, waits for a core, and reads."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tb_bottleneck.monitor.samplers.process_files import ProcessFiles
from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_SWITCHES, _CORE_WAIT, _READ = "involuntary_switches_total", "core_wait_total", "process_read"


class OwnProcess:
    """This process without its children."""

    every_s = 1.0

    def __init__(
        self, clock: Clock = time.monotonic, cpu_seconds: Clock = time.process_time, root: Path = Path("/")
    ) -> None:
        self._rates = Rates(clock)
        self._cpu_seconds = cpu_seconds
        self._files = ProcessFiles(root, os.getpid())

    def read(self) -> Iterator[Reading]:
        """Yields the cores from the second reading on."""
        counters = {"process_cores": self._cpu_seconds(), _READ: self._files.read_bytes()}
        known = {name: value for name, value in counters.items() if value is not None}
        for name, rate in self._rates.per_second(known).items():
            yield Reading(name, rate)
        yield Reading("process_threads", float(psutil.Process().num_threads()))
        if resource is not None:
            yield Reading(_SWITCHES, float(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw))
        waited = self._files.core_wait_ns()
        if waited is not None:
            yield Reading(_CORE_WAIT, waited)

    def missing(self) -> Mapping[str, str]:
        """Returns the context switches, except on Unix, and the waits for a core, except on Linux."""
        missing = {} if resource is not None else {_SWITCHES: "only Unix counts them per process"}
        if self._files.core_wait_ns() is None:
            missing[_CORE_WAIT] = "the kernel does not count it: only Linux has /proc/PID/schedstat"
        if self._files.read_bytes() is None:
            missing[_READ] = "only Linux counts it, in /proc/PID/io"
        return missing

    def close(self) -> None:
        """Does nothing."""
