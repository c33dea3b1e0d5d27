"""A first epoch that is slower than the others, because the data set, the page cache or a disk cache keeps what was
read. Nothing has to be changed then, and only the later epochs are judged."""

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.telemetry.bounded_columns import Bools
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.telemetry.windows import WARMUP_STEPS

MIN_STEPS = 10
"""Smallest number of steps of the first epoch, and of the later ones, for a comparison. A choice."""
CACHED = 0.5
"""If the mean wait for a batch in later epochs is at most this part of the wait in the first one, a cache was filled. A
choice: reading from memory is several times as fast as decoding or a disk."""
MIN_SAVED = 0.1
"""The difference of the waits has to be at least this part of the step of the first epoch."""


class FirstEpoch(Record, frozen=True):
    """The first epoch of a run that filled a cache. `end` is its end (ns since 1970), `steps` its number of steps.
    `times_longer` is the mean step time in it / the mean step time of later epochs."""

    end: int
    steps: int
    times_longer: float


def first_epoch_of(telemetry: Telemetry) -> FirstEpoch | None:
    """Returns the first epoch if it filled a cache, otherwise None, also if too few steps or epochs were recorded."""
    steps = telemetry.steps
    if not len(steps):
        return None
    begins = np.flatnonzero(np.nan_to_num(steps.column("epoch_start").high) > 0)
    if len(begins) < 2:
        return None
    rows, number = np.arange(len(steps)), steps.column("number").mean
    # The first batch of an epoch waits for new workers, and the first steps of a run for lazy loading.
    usual = ~np.isin(rows, begins) & (number >= number[0] + WARMUP_STEPS)
    usual &= ~(steps.column("profiled").high > 0) & ~np.isnan(steps.column("loader_wait").mean)
    first, later = usual & (rows < begins[1]), usual & (rows > begins[1])
    counts = [int(steps.count[each].sum()) for each in (first, later)]
    if min(counts) < MIN_STEPS or counts[1] < counts[0] / 2:
        return None

    def mean(column: str, which: Bools) -> float:
        return float(np.average(steps.column(column).mean[which], weights=steps.count[which]))

    wait, wait_later = mean("loader_wait", first), mean("loader_wait", later)
    wall, wall_later = mean("wall", first), mean("wall", later)
    if wait_later > CACHED * wait or wait - wait_later < MIN_SAVED * wall:
        return None
    return FirstEpoch(int(steps.end[begins[1] - 1]), int(steps.count[: begins[1]].sum()), wall / wall_later)
