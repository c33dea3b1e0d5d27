"""The samples of hardware counters in a trace: utilisation, bandwidth, clocks, power and temperature of devices.

The profiler of torch 2.15 samples the counters at a fixed interval. It writes each sample of a counter as a counter
event ("C") of a process "GPU N Counters" (torch/profiler/_cuspy/trace.py: _build_chrome_counters).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_bottleneck.trace.columns.labels import clean
from tb_bottleneck.trace.columns.number_columns import times
from tb_bottleneck.trace.table import Floats, Ints, Table, column

MAX_SAMPLES, MAX_NAMES = 5_000_000, 1_000
"""Most samples and most counters. Twenty counters at 1 kHz have 72 million samples in an hour, but a recording takes
only seconds."""

MAX_VALUE = 1e12
"""Only values from 0 to below this limit are used: each share, clock, power and temperature is in this range."""

_PROCESS = re.compile(r"GPU (\d{1,4}) Counters")


@dataclass(frozen=True, eq=False)
class Counters(Table):
    """Samples, sorted by time. A value is for the time since the previous sample of the same counter."""

    time: Ints = column("ns", "time of the sample, on the recording's own clock")
    device: Ints = column("id", "index of the device")
    name: Ints = column("row of counter names", "the counter")
    value: Floats = column("unit of the counter", "the value")


class CountersBuilder:
    """Builds the table of samples from batches of counter events.

    `lost` counts the samples that are left out because of MAX_SAMPLES or MAX_NAMES.
    """

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        self._names: dict[str, int] = {}
        self._rows: list[tuple[Any, int, int, float]] = []

    def add(self, events: Sequence[Any]) -> None:
        """Adds counter events ("C"). Ignores events whose process is not named "GPU N Counters"."""
        for event in events:
            process = _PROCESS.fullmatch(event.pid) if isinstance(event.pid, str) else None
            value = getattr(event.args, "counter", None)
            if process is None or not isinstance(value, int | float) or not 0 <= value < MAX_VALUE:
                continue  # a counter of something else, such as a queue of the program
            name = clean(event.name)
            known = name in self._names or len(self._names) < MAX_NAMES
            if not known or len(self._rows) >= MAX_SAMPLES:
                self.lost["counters"] += 1
                continue
            self._rows.append((event.ts, int(process[1]), self._names.setdefault(name, len(self._names)), float(value)))

    def names(self) -> tuple[str, ...]:
        """Returns the names of the counters. Counters.name has indices into these names, which are untrusted text."""
        return tuple(self._names)

    def build(self) -> Counters:
        """Returns the table of all added samples that have a valid time."""
        if not self._rows:
            return Counters.empty()
        written, device, name, value = zip(*self._rows, strict=True)
        time, good = times(list(written))
        order = np.argsort(time[good], kind="stable")
        rows = np.flatnonzero(good)[order]
        return Counters(
            time[rows], np.array(device, np.int64)[rows], np.array(name, np.int64)[rows], np.array(value)[rows]
        )
