"""Signals of each telemetry window, as shares of the time of the window's steps; NaN if a signal is missing."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.telemetry.bounded_columns import Bools, Floats, Times
from tb_bottleneck.telemetry.windows import Windows

# A step that is more than this many times as long as the median step of its window is irregular: it contains a
# checkpoint, an evaluation or a garbage collection.
OFF_CADENCE = 3.0
# Fewer steps than this give no median to compare outliers with.
MIN_STEPS_OF_MEDIAN = 5

# Every k-th step is interrupted if it takes at least RECURRING times as long as the other steps, although it does the
# same work: the time of its phases, or the device's span, is at most SAME_WORK times as long. OFF_CADENCE does not find
# these steps if k is 2, because half of the steps are long and raise the median.
RECURRING = 2.0
SAME_WORK = 1.25
# The distance between consecutive long steps, in steps, must be equal to the median distance in at least this share of
# the cases. If half of the steps are long by chance, the share is about 0.5.
STEADY_DISTANCES = 0.8

PHASES = ("forward", "backward", "optimizer")
INTERRUPTIONS = ("checkpoint", "logging", "garbage_collection", "evaluation")
"""The step columns with the time of interruptions of a training."""


@dataclass(frozen=True)
class Signals:
    """Signals with one number per window. Times are given as shares (0 to 1) of `weight`, which is in ns."""

    weight: Floats
    """Time of the window's steps in ns; without steps, the length of the window."""

    loader: Floats
    transfer: Floats
    phases: Floats
    """Host time in the phases of a step: forward, backward and optimizer."""

    outside: Floats
    """Host time outside loader, copies and phases; NaN if a phase is unknown, because this time may be part of it."""

    span: Floats
    """Time from the first to the last device event of a step."""

    utilisation: Floats
    """Utilisation of the device by all processes."""

    tenants: Floats
    """Utilisation by other processes; 0 if none is known."""

    interrupted: Floats
    """Time of recorded interruptions, plus the time by which irregular steps exceed the usual steps (`Excess`)."""

    syncs: Floats
    """Number of waits of the host for the device, per step."""

    allocations: Floats
    """Number of memory blocks allocated from the driver, plus number of blocks freed to the driver, per step."""


def signals_of(windows: Windows) -> Signals:
    """Returns the signals of all telemetry windows, one value per window.

    A value that was not recorded is NaN, or 0 in `tenants` and `interrupted`.
    """
    wall = windows.wall
    steps = windows.steps
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [windows.total(name) for name in PHASES]
        phases = np.minimum(_sum_of_known(parts) / wall, 1.0)
        complete = sum(parts) / wall
        blocks = _sum_of_known([windows.total("device_allocations"), windows.total("device_frees")]) / steps
        share = {name: windows.total(name) / wall for name in ("loader_wait", "transfer", "device_busy")}
        syncs = windows.total("syncs") / steps
        recorded = np.nan_to_num(_sum_of_known([windows.total(name) for name in INTERRUPTIONS]))
        interrupted = np.minimum((excess_of(windows).by_window + recorded) / wall, 1.0)
    alone = not steps.any()
    return Signals(
        weight=np.full(len(windows), float(windows.grid.width)) if alone else wall,
        loader=np.minimum(share["loader_wait"], 1.0),
        transfer=np.minimum(share["transfer"], 1.0),
        phases=phases,
        outside=np.clip(
            1.0 - np.nan_to_num(share["loader_wait"]) - np.nan_to_num(share["transfer"]) - complete, 0.0, 1.0
        ),
        span=np.minimum(share["device_busy"], 1.0),
        utilisation=windows.mean("gpu_utilisation", of_device=True),
        tenants=np.nan_to_num(windows.mean("other_processes_utilisation", of_device=True)),
        interrupted=np.nan_to_num(interrupted),
        syncs=syncs,
        allocations=blocks,
    )


@dataclass(frozen=True)
class Excess:
    """Irregular steps. `number` has the step number of each, and `ns` the time by which it exceeds the usual step.

    `by_window` has the sum of these times in each window, in ns.
    """

    by_window: Floats
    number: Times
    ns: Floats


def excess_of(windows: Windows) -> Excess:
    """Returns the irregular steps: those that are more than OFF_CADENCE times as long as the median step of the window.

    The length of a step is taken without loader time and recorded interruptions. If every k-th step is RECURRING times
    as long as the others and does the same work, these steps are irregular, too. Time in which the device works is not
    excess. If the CPU is the device, the time of the phases is the time in which it works.
    """
    number, longest, mean = windows.highest("wall")
    _, waited, waited_mean = windows.highest("loader_wait")
    worked = ("device_busy",) if windows.device is not None or windows.times_device else PHASES
    busy = sum((np.nan_to_num(windows.highest(name)[1]) for name in worked), np.zeros(len(longest)))
    apart = [(waited, waited_mean), *(windows.highest(name)[1:] for name in INTERRUPTIONS)]
    waited = sum((np.nan_to_num(most) for most, _ in apart), np.zeros(len(longest)))
    waited_mean = sum((np.nan_to_num(usual) for _, usual in apart), np.zeros(len(longest)))
    rest = np.maximum(longest - waited, 0.0)
    usual = _usual(np.maximum(mean - waited_mean, 0.0), windows)
    recurs, others = _recurring(number, rest, busy)
    usual = np.where(recurs, others, usual)
    off = recurs | (rest > OFF_CADENCE * usual)
    beyond = np.where(off, np.minimum(rest - usual, np.maximum(rest - busy, 0.0)), 0.0)
    by_window = np.bincount(windows.window_of_steps, beyond, len(windows)).astype(float)
    return Excess(by_window, number[off & (beyond > 0)], beyond[off & (beyond > 0)])


def _recurring(number: Times, rest: Floats, busy: Floats) -> tuple[Bools, float]:
    """Returns a mask of the long steps and the median time of the other steps in ns, if every k-th step is long.

    Otherwise, the mask is all False, and the time is 0. The arguments have one element per step: `number` is the step
    number, `rest` the length without loader time and recorded interruptions, `busy` the time of the device's work (ns).
    """
    none = np.zeros(len(rest), bool), 0.0
    if len(rest) < 2 * MIN_STEPS_OF_MEDIAN:
        return none
    low, high = np.percentile(rest, [10, 90])
    long = rest > np.sqrt(max(low, 0.0) * max(high, 0.0))
    distance = np.diff(number[long])
    if long.sum() < MIN_STEPS_OF_MEDIAN or (~long).sum() < MIN_STEPS_OF_MEDIAN or np.median(distance) < 2:
        return none
    others, work = float(np.median(rest[~long])), float(np.median(busy[~long]))
    is_longer = float(np.median(rest[long])) >= RECURRING * others
    same_work = 0 < float(np.median(busy[long])) <= SAME_WORK * work
    steady = float((distance == np.median(distance)).mean()) >= STEADY_DISTANCES
    return (long, others) if is_longer and same_work and steady else none


def _usual(values: Floats, windows: Windows) -> Floats:
    """Returns for each row of steps the median of `values` in its window, or in all windows if its window has few rows.

    A row stands for the steps that the monitor counted together; `values` has one element per row.
    """
    if not len(values):
        return values
    counts = windows.counts_of_steps
    usual = np.full(len(windows), percentile(values, 50, counts))
    cuts = np.flatnonzero(np.diff(windows.window_of_steps)) + 1
    for rows in np.split(np.arange(len(values)), cuts):
        if len(rows) >= MIN_STEPS_OF_MEDIAN:
            usual[windows.window_of_steps[rows[0]]] = percentile(values[rows], 50, counts[rows])
    return np.asarray(usual[windows.window_of_steps])


def _sum_of_known(parts: list[Floats]) -> Floats:
    """Returns for each window the sum of its known values in `parts`; NaN if no value is known."""
    table = np.array(parts)
    return np.where(np.isnan(table).all(axis=0), np.nan, np.nansum(table, axis=0))
