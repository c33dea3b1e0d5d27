"""The memory of a device and of the host in the series that the monitor records: peaks, growth and limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.memory.categories import Category, MemoryAccount
from tb_bottleneck.memory.finding import WARNING, MemoryFinding, Value
from tb_bottleneck.memory.findings import DOMINATES, by_severity, near_limit
from tb_bottleneck.schema.signals import HOST
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.trace.process_facts import parameters_in_fp32

Floats = NDArray[np.float64]

PARTS = 8
"""Number of parts of equal length into which the run after its first tenth is divided. The lowest values of the parts
are compared."""
MIN_READINGS = 3 * PARTS
GROWTH = 0.05
"""Smallest growth over the run that counts, as a share of the lowest value of the first part. Amazon SageMaker's rule
for rising memory uses the same share."""
STEADY = 0.5
"""The growth in the second half of the run must be at least this share of the growth in the first half. With less, the
memory reaches a stable level: imports, compilation and caches grow only at the start, but a leak continues to grow. Our
own limit."""
HOST_SHORT = 0.95
"""Share of the host's memory in use from which on memory is short. Reclaimable caches do not count as in use."""
SHARED_SHORT = 0.9
"""Share of /dev/shm in use from which on shared memory is short; the same share as for devices. In a container,
/dev/shm is small compared with the batches of a loader."""
PINNED_HIGH = 0.5
"""Share of the host's memory that is pinned, from which on this is too much. The system can then page only the smaller
half (our own limit; CUDA's documentation of cudaMallocHost warns of excessive amounts without a number)."""


@dataclass(frozen=True, eq=False)
class TelemetryMemory:
    """The memory of the device and of the host over a monitored run. `kind` is the kind of the device, as in
    MemoryAccount."""

    telemetry: Telemetry
    kind: str

    @cached_property
    def account(self) -> MemoryAccount | None:
        """The memory at the peak, divided into tensors, the allocator's cache, and memory outside torch.

        None if neither the driver's nor the allocator's figures were recorded. The driver's figures include the memory
        of other processes."""
        used, total = self._device("memory_used"), self._device("memory_total")
        reserved, allocated = self._highest("memory_reserved"), self._highest("memory_allocated_peak")
        if not len(used) and reserved is None:
            return None
        held = reserved or 0
        in_tensors = min(allocated or 0, held)
        peak = max(int(used.max(initial=0.0)), held)
        bytes_of = {
            Category.UNEXPLAINED: in_tensors if reserved is not None else peak,
            Category.CACHE: held - in_tensors,
            Category.OUTSIDE_TORCH: peak - held if reserved is not None else 0,
        }
        capacity = int(total.max()) if len(total) and total.max() > 0 else None
        return MemoryAccount(bytes_of, "telemetry", self.kind, in_tensors, held, capacity=capacity)

    def findings(self) -> list[MemoryFinding]:
        """Returns the findings about the memory of the run, the most severe first."""
        account = self.account
        limit = near_limit(account, self._in_fp32()) if account is not None else None
        host = (self._host_short(), self._shared_short(), self._pinned_high())
        return by_severity((limit, self._growth(), *self._host_growth(), *host))

    def _in_fp32(self) -> list[Value]:
        """Returns one line of evidence with the fraction of the parameters in fp32; an empty list if this fraction is
        at most DOMINATES, or unknown."""
        share = parameters_in_fp32(self.telemetry.facts.get("parameters_by_dtype")) or 0.0
        return [Value("fp32_parameters", share, "share")] if share > DOMINATES else []

    def _growth(self) -> MemoryFinding | None:
        """Returns the finding about rising device memory; None if the memory does not rise.

        The figure is the allocator's bytes in tensors. With fewer than MIN_READINGS values, the driver's figure is
        used, which includes the allocator's cache."""
        values = self._step_column("memory_allocated")
        if len(values) < MIN_READINGS:
            values = self._device("memory_used")
        return rising("rising_memory", values)

    def _host_growth(self) -> Iterator[MemoryFinding | None]:
        """Yields the findings (or None) about rising memory of the training process and of the loader's workers."""
        yield rising("rising_host_memory", self._at_even_steps("process_memory"))
        yield rising("rising_worker_memory", self._at_even_steps("worker_pss"))

    def _shared_short(self) -> MemoryFinding | None:
        used, total = self._series("shared_memory_used", HOST), self._series("shared_memory_total", HOST)
        if not len(used) or not len(total) or used.max() < SHARED_SHORT * total.min():
            return None
        evidence = (Value("shared_used", float(used.max())), Value("shared_total", float(total.min())))
        return MemoryFinding("shared_memory_short", WARNING, 0, evidence)

    def _pinned_high(self) -> MemoryFinding | None:
        pinned, total = self._series("pinned_memory", HOST), self._series("host_memory_total", HOST)
        if not len(pinned) or not len(total) or pinned.max() < PINNED_HIGH * total.min():
            return None
        most = float(pinned.max())
        return MemoryFinding(
            "pinned_memory_high", WARNING, int(most), (Value("pinned", most), Value("host", total.min()))
        )

    def _host_short(self) -> MemoryFinding | None:
        used = self._series("host_memory_used", HOST)
        if not len(used) or float(used.max()) < HOST_SHORT:
            return None
        return MemoryFinding("host_memory_short", WARNING, 0, (Value("used", float(used.max()), "share"),))

    def _device(self, name: str) -> Floats:
        """Returns the values of the series `name` for the device with the highest value of this series; empty without
        readings."""
        found = [self._series(name, device) for device in self.telemetry.devices]
        return max(found, key=lambda values: float(values.max(initial=0.0)), default=np.empty(0))

    def _series(self, name: str, device: str) -> Floats:
        rows = self.telemetry.series.get((name, device))
        return np.empty(0) if rows is None else rows.column("value").high

    def _at_even_steps(self, name: str) -> Floats:
        """Returns values of the host's series `name` at equal distances in steps, as many as the series has readings.

        A leak adds memory in each step, but the readings have equal distances in time. If steps became longer, the
        readings of a constant leak would look like a growth that ends. With fewer than MIN_READINGS steps, the readings
        are returned as they are."""
        rows, steps = self.telemetry.series.get((name, HOST)), self.telemetry.steps
        if rows is None or len(steps) < MIN_READINGS:
            return self._series(name, HOST)
        done = np.interp(rows.end, steps.end, np.cumsum(steps.count))
        even = np.linspace(done[0], done[-1], len(done))
        return rows.column("value").high[np.searchsorted(done, even)]

    def _step_column(self, name: str) -> Floats:
        values = self.telemetry.steps.column(name).high
        return values[~np.isnan(values)]

    def _highest(self, name: str) -> int | None:
        values = self._step_column(name)
        return int(values.max()) if len(values) else None


def rising(cause: str, values: Floats) -> MemoryFinding | None:
    """Returns a finding with the key `cause` if `values` (bytes, in order of time) rise over the whole run, otherwise
    None.

    The first tenth is left out, and the rest is divided into PARTS parts. The lowest value of each part must exceed
    that of the part before. From the first to the last part, the lowest value must grow by at least the fraction
    GROWTH, and the growth must continue in the second half (STEADY). Healthy runs reach a level and stay there. The
    TensorBoard tab applies the same rule to the visible range (memory_trend.ts)."""
    values = values[len(values) // 10 :]
    if len(values) < MIN_READINGS:
        return None
    lows = np.array([part.min() for part in np.array_split(values, PARTS)])
    grown = float(lows[-1] - lows[0])
    early, late = lows[PARTS // 2 - 1] - lows[0], lows[-1] - lows[PARTS // 2]
    if not (np.diff(lows) > 0).all() or grown < GROWTH * lows[0] or late < STEADY * early:
        return None
    return MemoryFinding(cause, WARNING, int(grown), (Value("from", lows[0]), Value("to", lows[-1])))
