"""The training process's own cores, threads, and involuntary context switches."""

import time
from collections.abc import Iterator, Mapping

import psutil

from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_SWITCHES = "involuntary_switches_total"


class OwnProcess:
    """This process without its children."""

    every_s = 1.0

    def __init__(self, clock: Clock = time.monotonic, cpu_seconds: Clock = time.process_time) -> None:
        self._rates = Rates(clock)
        self._cpu_seconds = cpu_seconds

    def read(self) -> Iterator[Reading]:
        """Yields the cores from the second reading on."""
        for cores in self._rates.per_second({"cpu": self._cpu_seconds()}).values():
            yield Reading("process_cores", cores)
        yield Reading("process_threads", float(psutil.Process().num_threads()))
        if resource is not None:
            yield Reading(_SWITCHES, float(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw))

    def missing(self) -> Mapping[str, str]:
        """Returns the context switches on systems other than Unix."""
        return {} if resource is not None else {_SWITCHES: "only Unix counts them per process"}

    def close(self) -> None:
        """Does nothing."""
