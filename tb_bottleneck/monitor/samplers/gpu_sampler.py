"""The GPU sampler: runs each query for each GPU of this process at its interval, and recovers from a lost driver."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice, GpuDriver, GpuQuery, UnknownGpus
from tb_bottleneck.monitor.samplers.io import Clock
from tb_bottleneck.monitor.samplers.sampler import Reading

RETRY_S = 60.0
"""Pause in seconds after a temporary error, because a call to a driver that is being restarted can take seconds."""
REFRESH_GPUS_S = 30.0
"""Interval in s between updates of the list of this process's GPUs. The process may start to use another GPU."""
RESULTS_BEFORE_MISSING = 3
"""Number of results without a signal after which the signal counts as missing. The first result of a query for a rate
is always empty."""
# A query may run early by this share of its interval, because the monitor's thread never wakes exactly on time.
_EARLY = 0.1

D = TypeVar("D", bound=GpuDriver)
Choose = Callable[[Sequence[GpuDevice]], Sequence[GpuDevice]]


@dataclass(frozen=True, slots=True)
class _Outage:
    because: str
    until: float


class GpuSampler(Generic[D]):
    """Reads the GPUs that the function `choose` selects.

    `choose` may raise UnknownGpus; the driver and queries may raise DriverError. The sampler catches these errors: it
    does not repeat a failed query for some time, and `missing` gives the reason. `clock` returns seconds."""

    every_s = 1.0

    def __init__(
        self, driver: D, queries: Sequence[GpuQuery[D]], choose: Choose, clock: Clock = time.monotonic
    ) -> None:
        self._driver = driver
        self._queries = queries
        self._choose = choose
        self._clock = clock
        self._open = False
        self._gpus: tuple[GpuDevice, ...] = ()
        self._refresh_at = -math.inf
        self._no_gpus = _Outage("the driver has not been queried yet", -math.inf)
        self._due: dict[tuple[str, int], float] = {}
        self._outages: dict[tuple[str, int], _Outage] = {}
        self._result_counts: dict[tuple[str, int], int] = {}
        self._available: set[tuple[str, str]] = set()

    def read(self) -> Iterator[Reading]:
        """Yields the readings of all queries whose interval has passed."""
        now = self._clock()
        for gpu in self._present(now):
            for index, query in enumerate(self._queries):
                if not self._open:
                    return
                key = (gpu.uuid, index)
                if now < self._due.get(key, -math.inf):
                    continue
                self._due[key] = now + query.every_s * (1 - _EARLY)
                yield from self._read_query(key, query, gpu, now)

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for the signals that no GPU of this process has; for all signals if there is no
        GPU."""
        gpus = self._present(self._clock())
        if not gpus:
            return {signal: self._no_gpus.because for query in self._queries for signal in query.signals}
        missing: dict[str, str] = {}
        for index, query in enumerate(self._queries):
            for signal in query.signals:
                reasons = [self._missing_reason(gpu, index, signal) for gpu in gpus]
                if all(reasons):
                    missing[signal] = reasons[0]
        return missing

    def close(self) -> None:
        """Releases the driver."""
        if self._open:
            self._open = False
            self._driver.close()
        self._gpus = ()
        self._no_gpus = _Outage("the monitor has ended", math.inf)

    def _read_query(self, key: tuple[str, int], query: GpuQuery[D], gpu: GpuDevice, now: float) -> Iterator[Reading]:
        try:
            values = query.read(self._driver, gpu)
        except DriverError as error:
            self._outages[key] = _Outage(str(error), math.inf if error.lasting else now + RETRY_S)
            self._due[key] = self._outages[key].until
            if error.lost:
                self._lose(str(error), now)
            return
        self._outages.pop(key, None)
        self._result_counts[key] = self._result_counts.get(key, 0) + 1
        for signal, value in values.items():
            if math.isfinite(value):
                self._available.add((gpu.uuid, signal))
                yield Reading(signal, value, gpu.uuid)

    def _missing_reason(self, gpu: GpuDevice, index: int, signal: str) -> str:
        """Returns why `gpu` does not have `signal`; "" if it has the signal, or may have it later. `index` is the
        number of the query that reads the signal."""
        outage = self._outages.get((gpu.uuid, index))
        if outage is not None:
            return outage.because
        enough = self._result_counts.get((gpu.uuid, index), 0) >= RESULTS_BEFORE_MISSING
        never = enough and (gpu.uuid, signal) not in self._available
        return "the driver's results do not contain it" if never else ""

    def _present(self, now: float) -> tuple[GpuDevice, ...]:
        """Returns the GPUs to query at the time `now` (s). Empty if the driver is lost or missing, or if this process's
        GPUs are unknown."""
        if now < (self._refresh_at if self._gpus else self._no_gpus.until):
            return self._gpus
        try:
            if not self._open:
                self._driver.open()
                self._open = True
            self._gpus = tuple(self._choose(self._driver.gpus()))
            self._refresh_at = now + REFRESH_GPUS_S
        except UnknownGpus as reason:
            self._gpus, self._no_gpus = (), _Outage(str(reason), now)
        except DriverError as error:
            self._lose(str(error), math.inf if error.lasting else now)
        return self._gpus

    def _lose(self, because: str, now: float) -> None:
        self._gpus, self._no_gpus = (), _Outage(because, now + RETRY_S)
        self._due.clear()
        if self._open:
            self._open = False
            self._driver.close()
