"""Telemetry cut into windows of equal length: sums over the steps, means over the readings, one number per window.

time     |        |        |        |
steps    .. . . .. . . . . .. . . ..      a window's steps are those that end in it
readings .  .  .  .  .  .  .  .  .  .     mean over a window; for a counter, its increase
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.schema.signals import CAPTURE_OVER, CAPTURE_STARTED, HOST
from tb_bottleneck.telemetry.bounded_columns import Bools, Floats, Times
from tb_bottleneck.telemetry.telemetry import Telemetry

MIN_WINDOW_NS = 10 * NS_PER_S
"""Time of ten readings at one per second. One reading is not enough: the driver's utilisation is itself a mean over up
to one second."""

READING_NS = NS_PER_S
"""A reading of a device is a mean over at most this time before the reading. NVML says at most one second, and counters
are read once a second."""

LONGEST_CAPTURE_NS = 60 * NS_PER_S
"""Longest time of a capture. If the next note about an end is later, that note belongs to something else, because the
note about the end of this capture was lost. The capture then ends after this time. The value is a choice."""

STEPS_PER_WINDOW = 10
"""Minimum number of steps in a window, at the median step time. With several workers, batches arrive in bursts, so a
few steps do not show the usual wait."""

MAX_WINDOWS = 1440
"""One window per minute of a day."""

WARMUP_STEPS = 5
"""The first steps pay for lazy loading, allocation and compilation (pytorch docs, torch.profiler.schedule)."""


@dataclass(frozen=True)
class Grid:
    """Time windows of equal length: `count` windows of `width` ns each, from `begin` (ns since 1970) on."""

    begin: int
    width: int
    count: int

    @property
    def edges(self) -> Times:
        """The limits of the windows in ns since 1970, shape (count + 1,)."""
        return self.begin + self.width * np.arange(self.count + 1, dtype=np.int64)

    def window_of(self, when: Times) -> Times:
        """Returns the index of the window of each time in `when` (ns since 1970). Times outside all windows get the
        first or the last window."""
        window: Times = np.clip((when - self.begin) // self.width, 0, self.count - 1)
        return window


class Windows:
    """The telemetry of one process, cut into time windows of equal length. NaN means that nothing is known for a
    window."""

    def __init__(self, telemetry: Telemetry, since: int = 0) -> None:
        """Uses only telemetry that ended after `since`, in ns since 1970; all telemetry if `since` is 0."""
        self._telemetry = telemetry
        self._steps = telemetry.steps
        self._judged = _judged_steps(telemetry, since)
        self.grid = _grid(telemetry, self._judged, since)
        self._window = self.grid.window_of(self._steps.end)[self._judged]

    def __len__(self) -> int:
        return self.grid.count

    @cached_property
    def device(self) -> str | None:
        """The UUID of the GPU that this process trains on: the GPU that the run's context names, otherwise the busiest
        GPU; None if there are no GPUs."""
        uuid = str(self._telemetry.facts.get("device_uuid", "")).lower()
        devices = self._telemetry.devices
        # torch omits the driver's prefix "GPU-".
        named = [
            device for device in devices if uuid and device.lower().removeprefix("gpu-") == uuid.removeprefix("gpu-")
        ]
        if named:
            return named[0]
        return max(devices, key=self._utilisation_of) if devices else None

    @cached_property
    def times_device(self) -> bool:
        """True if the device time of any step was measured."""
        return bool((~np.isnan(self._steps.column("device_busy").mean)).any())

    def _utilisation_of(self, device: str) -> float:
        rows = self._telemetry.series.get(("gpu_utilisation", device))
        return float(np.mean(rows.column("value").mean)) if rows is not None and len(rows) else -1.0

    @cached_property
    def steps(self) -> Floats:
        """Number of judged steps that ended in each window."""
        return self._summed(self._steps.count[self._judged].astype(float))

    @cached_property
    def wall(self) -> Floats:
        """Time of the judged steps in each window, ns."""
        return self.total("wall")

    def total(self, column: str) -> Floats:
        """Returns the sum of a step column over each window's steps; NaN if no step of the window has a value.

        For a step without a value, the mean of the other steps in the same window is used.
        """
        mean = self._steps.column(column).mean[self._judged]
        count = self._steps.count[self._judged]
        known = ~np.isnan(mean)
        total = self._summed(np.where(known, mean * count, 0.0))
        weight = self._summed(np.where(known, count, 0).astype(float))
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / weight * self.steps

    def highest(self, column: str) -> tuple[Times, Floats, Floats]:
        """Returns three arrays over the rows of judged steps: the mean step number as int, the highest value of the
        step column `column`, and its mean value."""
        of = self._steps.column(column)
        number = self._steps.column("number").mean[self._judged]
        return np.nan_to_num(number).astype(np.int64), of.high[self._judged], of.mean[self._judged]

    @property
    def counts_of_steps(self) -> Times:
        """Number of steps in each row of judged steps. A row is one step, or the mean of several steps."""
        return self._steps.count[self._judged]

    @property
    def spans_of_steps(self) -> tuple[Times, Times]:
        """Begin and end of each row of judged steps, in ns since 1970."""
        end = self._steps.end[self._judged]
        return end - (self.highest("wall")[2] * self.counts_of_steps).astype(np.int64), end

    @property
    def window_of_steps(self) -> Times:
        """For each row of judged steps, the index of its window."""
        return self._window

    def mean(self, name: str, of_device: bool = False) -> Floats:
        """Returns the mean of the series `name` in each window; NaN if there is no reading.

        If `of_device` is True, the series of `device` is used, otherwise the series of the host. A reading of a device
        is a mean over the time before the reading. Therefore readings that include time before the judged steps, or
        time of a capture, are left out if there are other readings.
        """
        rows = self._telemetry.series.get((name, self._owner(of_device)))
        if rows is None:
            return np.full(self.grid.count, np.nan)
        inside = self._inside(rows.end)
        if of_device and (undisturbed := inside & self._undisturbed(rows.end)).any():
            inside = undisturbed
        window = self.grid.window_of(rows.end[inside])
        weight = rows.count[inside].astype(float)
        total = np.bincount(window, rows.column("value").mean[inside] * weight, self.grid.count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / np.bincount(window, weight, self.grid.count))

    def growth(self, name: str, of_device: bool = False) -> Floats:
        """Returns the increase of the counter `name` in each window; NaN if there are no readings before and after the
        window, or if the counter decreased.

        `of_device` is as in `mean`."""
        rows = self._telemetry.series.get((name, self._owner(of_device)))
        if rows is None or len(rows) < 2:
            return np.full(self.grid.count, np.nan)
        read = np.interp(self.grid.edges, rows.end, rows.column("value").high, left=np.nan, right=np.nan)
        # The first window may begin before the first reading, and the last window may end after the last reading.
        read[0] = rows.column("value").low[0] if np.isnan(read[0]) else read[0]
        read[-1] = rows.column("value").high[-1] if np.isnan(read[-1]) else read[-1]
        grown = np.diff(read)
        return np.where(grown < 0, np.nan, grown)

    def readings(self, name: str, of_device: bool = False) -> tuple[Times, Floats]:
        """Returns the times (ns) and the values of the series `name`, not cut into windows. `of_device` is as in
        `mean`. The arrays are empty if there are no readings."""
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

    def _undisturbed(self, when: Times) -> Bools:
        """Returns a mask of the readings of a device at the times `when`. An entry is False if the reading includes
        time before the judged steps, or time of a capture."""
        mask = when >= self.grid.begin + READING_NS
        begin = None
        for note in self._telemetry.notes:
            if note.code == CAPTURE_STARTED:
                begin = note.unix_ns
            elif note.code in CAPTURE_OVER and begin is not None:
                end = min(note.unix_ns, begin + LONGEST_CAPTURE_NS)
                mask &= (when <= begin) | (when >= end + READING_NS)
                begin = None
        return np.asarray(mask)

    def _summed(self, weights: Floats) -> Floats:
        return np.bincount(self._window, weights, self.grid.count).astype(float)


def _judged_steps(telemetry: Telemetry, since: int) -> Bools:
    """Returns a mask of the rows of steps to judge. The mask leaves out warm-up steps, profiled steps, and steps that
    did not end after `since` (ns since 1970)."""
    steps = telemetry.steps
    if not len(steps):
        return np.zeros(0, np.bool_)
    number = steps.column("number").mean
    with np.errstate(invalid="ignore"):
        profiled = steps.column("profiled").high > 0
        warm = number >= number[0] + WARMUP_STEPS
    judged = ~profiled & warm & (steps.end > since)
    return np.asarray(judged)


def _grid(telemetry: Telemetry, judged: Bools, since: int) -> Grid:
    """Returns the windows. The windows reach from the start of the first judged step to the end of the last judged
    step. If there are no judged steps, the windows contain all readings after `since`."""
    if judged.any():
        end, wall = telemetry.steps.end[judged], telemetry.steps.column("wall").mean[judged]
        count = telemetry.steps.count[judged]
        begin, last = int(end[0] - wall[0] * count[0]), int(end[-1])
        least = STEPS_PER_WINDOW * percentile(wall, 50, count)
    else:
        ends = [rows.end for rows in telemetry.series.values() if len(rows)]
        begin = max(min((int(end[0]) for end in ends), default=0), since)
        last, least = max((int(end[-1]) for end in ends), default=0), 0.0
    span = max(last - begin, 1)
    width = min(_width_of(max(least, -(-span // MAX_WINDOWS))), span)
    return Grid(begin, width, max(round(span / width), 1))


def _width_of(least: float) -> int:
    """Returns the smallest window width of at least `least` ns: MIN_WINDOW_NS times a power of two.

    Because of the few possible widths, the edges of the windows, and the phases derived from the windows, rarely move
    while a run grows."""
    width = MIN_WINDOW_NS
    while width < least:
        width *= 2
    return width
