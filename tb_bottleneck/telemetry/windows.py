"""Telemetry cut into windows of equal length: sums over the steps, means over the readings, one number per window.

time     |        |        |        |
steps    .. . . .. . . . . .. . . ..      steps that end in a window are its steps
readings .  .  .  .  .  .  .  .  .  .     means over a window; of a counter, what it grew by
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.schema.signals import HOST
from tb_bottleneck.telemetry.bounded_columns import Bools, Floats, Times
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.units import NS_PER_S

SHORTEST_NS = 10 * NS_PER_S
"""Ten readings at one a second: the driver's utilisation is itself a mean over up to one second."""

STEPS_PER_WINDOW = 10
"""Loaders with several workers deliver in bursts, so a few steps say nothing of the wait."""

MOST_WINDOWS = 1440
"""A day in minutes."""

WARMUP_STEPS = 5
"""The first steps pay for lazy loading, allocation and compilation (pytorch docs, torch.profiler.schedule)."""


@dataclass(frozen=True)
class Grid:
    """`count` windows of `width` ns each, from `begin` on, ns since 1970."""

    begin: int
    width: int
    count: int

    @property
    def edges(self) -> Times:
        """Where windows begin and end: one more than there are windows."""
        return self.begin + self.width * np.arange(self.count + 1, dtype=np.int64)

    def window_of(self, when: Times) -> Times:
        """The window of each moment; what lies outside belongs to the first or the last."""
        found: Times = np.clip((when - self.begin) // self.width, 0, self.count - 1)
        return found


class Windows:
    """What the rules are told of one process, window by window. NaN: nothing is known for that window."""

    def __init__(self, telemetry: Telemetry, since: int = 0) -> None:
        """Of all of it, or of what ended after `since`, ns since 1970."""
        self._telemetry = telemetry
        self._steps = telemetry.steps
        self._kept = _kept_steps(telemetry, since)
        self.grid = _grid(telemetry, self._kept, since)
        self._window = self.grid.window_of(self._steps.end)[self._kept]

    def __len__(self) -> int:
        return self.grid.count

    @cached_property
    def device(self) -> str | None:
        """The GPU that this process trains on: what its context says, or the only one, or the busiest."""
        said = str(self._telemetry.facts.get("device_uuid", "")).lower()
        devices = self._telemetry.devices
        # torch leaves out the "GPU-" that the driver writes in front.
        told = [
            device for device in devices if said and device.lower().removeprefix("gpu-") == said.removeprefix("gpu-")
        ]
        if told:
            return told[0]
        return max(devices, key=self._utilisation_of) if devices else None

    @cached_property
    def times_device(self) -> bool:
        """Whether any step knows how long the device worked on it."""
        return bool((~np.isnan(self._steps.column("device_busy").mean)).any())

    def _utilisation_of(self, device: str) -> float:
        rows = self._telemetry.series.get(("gpu_utilisation", device))
        return float(np.mean(rows.column("value").mean)) if rows is not None and len(rows) else -1.0

    @cached_property
    def steps(self) -> Floats:
        """Unprofiled steps that ended in each window."""
        return self._summed(self._steps.count[self._kept].astype(float))

    @cached_property
    def wall(self) -> Floats:
        """Their time, ns."""
        return self.total("wall")

    def total(self, column: str) -> Floats:
        """The sum of a step column over each window's steps; NaN where no step of the window knows it.

        Steps that do not know it count as the mean of those of their window that do.
        """
        mean = self._steps.column(column).mean[self._kept]
        count = self._steps.count[self._kept]
        known = ~np.isnan(mean)
        told = self._summed(np.where(known, mean * count, 0.0))
        weight = self._summed(np.where(known, count, 0).astype(float))
        with np.errstate(invalid="ignore", divide="ignore"):
            return told / weight * self.steps

    def highest(self, column: str) -> tuple[Times, Floats, Floats]:
        """Of the unprofiled steps: the row's first step's number, the highest value, and the mean of the row."""
        of = self._steps.column(column)
        number = self._steps.column("number").mean[self._kept]
        return np.nan_to_num(number).astype(np.int64), of.high[self._kept], of.mean[self._kept]

    @property
    def window_of_steps(self) -> Times:
        """The window of each row of the unprofiled steps."""
        return self._window

    def mean(self, name: str, of_device: bool = False) -> Floats:
        """The mean of a series over each window; NaN where there is no reading."""
        rows = self._telemetry.series.get((name, self._owner(of_device)))
        if rows is None:
            return np.full(self.grid.count, np.nan)
        inside = self._inside(rows.end)
        window = self.grid.window_of(rows.end[inside])
        weight = rows.count[inside].astype(float)
        total = np.bincount(window, rows.column("value").mean[inside] * weight, self.grid.count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / np.bincount(window, weight, self.grid.count))

    def growth(self, name: str, of_device: bool = False) -> Floats:
        """What a counter grew by in each window; NaN where it was not read before and after, or went back."""
        rows = self._telemetry.series.get((name, self._owner(of_device)))
        if rows is None or len(rows) < 2:
            return np.full(self.grid.count, np.nan)
        read = np.interp(self.grid.edges, rows.end, rows.column("value").high, left=np.nan, right=np.nan)
        # The first and the last window reach a little past the readings.
        read[0] = rows.column("value").low[0] if np.isnan(read[0]) else read[0]
        read[-1] = rows.column("value").high[-1] if np.isnan(read[-1]) else read[-1]
        grown = np.diff(read)
        return np.where(grown < 0, np.nan, grown)

    def readings(self, name: str, of_device: bool = False) -> tuple[Times, Floats]:
        """A series as it is: time (ns) and value."""
        rows = self._telemetry.series.get((name, self._owner(of_device)))
        if rows is None:
            return np.empty(0, np.int64), np.empty(0)
        inside = self._inside(rows.end)
        return rows.end[inside], rows.column("value").mean[inside]

    def _owner(self, of_device: bool) -> str:
        return (self.device or "") if of_device else HOST

    def _inside(self, when: Times) -> Bools:
        edges = self.grid.edges
        return np.asarray((when >= edges[0]) & (when <= edges[-1]))

    def _summed(self, weights: Floats) -> Floats:
        return np.bincount(self._window, weights, self.grid.count).astype(float)


def _kept_steps(telemetry: Telemetry, since: int) -> Bools:
    """The steps that are judged: neither the run's first ones, nor those that a profiler slowed."""
    steps = telemetry.steps
    if not len(steps):
        return np.zeros(0, np.bool_)
    number = steps.column("number").mean
    with np.errstate(invalid="ignore"):
        profiled = steps.column("profiled").high > 0
        warm = number >= number[0] + WARMUP_STEPS
    kept = ~profiled & warm & (steps.end > since)
    return np.asarray(kept)


def _grid(telemetry: Telemetry, kept: Bools, since: int) -> Grid:
    """From the first judged step's begin to the last one's end; without steps, over all readings."""
    if kept.any():
        end, wall = telemetry.steps.end[kept], telemetry.steps.column("wall").mean[kept]
        count = telemetry.steps.count[kept]
        begin, last = int(end[0] - wall[0] * count[0]), int(end[-1])
        least = STEPS_PER_WINDOW * float(np.median(wall))
    else:
        ends = [rows.end for rows in telemetry.series.values() if len(rows)]
        begin = max(min((int(end[0]) for end in ends), default=0), since)
        last, least = max((int(end[-1]) for end in ends), default=0), 0.0
    span = max(last - begin, 1)
    width = min(_width_of(max(least, -(-span // MOST_WINDOWS))), span)
    return Grid(begin, width, max(round(span / width), 1))


def _width_of(least: float) -> int:
    """The shortest window of at least this many ns. Lengths double, so that in a run that grows the edges of windows,
    and with them the stretches that were told, stay where they are but for a few times."""
    width = SHORTEST_NS
    while width < least:
        width *= 2
    return width
