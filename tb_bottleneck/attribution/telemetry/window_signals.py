"""What the telemetry tells of each window, as shares of the time of its steps; NaN where a signal is missing."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.telemetry.bounded_columns import Floats, Times
from tb_bottleneck.telemetry.windows import Windows

# A step this many times as long as its neighbours is off the cadence: a checkpoint, an evaluation, a collection.
OFF_CADENCE = 3.0
# Fewer steps than this give no median that an outlier could be held against.
ENOUGH_ROWS = 5

PHASES = ("forward", "backward", "optimizer")


@dataclass(frozen=True)
class Signals:
    """One number per window."""

    weight: Floats
    """Time of the window's steps, ns; without steps the window's own length."""

    loader: Floats
    transfer: Floats
    phases: Floats
    """Host time in forward, backward and optimizer."""

    outside: Floats
    """Host time in neither loader, copies nor phases; NaN where one of the phases is not known: it may be in there."""

    span: Floats
    """Time from the device's first event of a step to its last."""

    utilisation: Floats
    """Of the device, by every process."""

    tenants: Floats
    """Utilisation by other processes; 0 where none is known of."""

    interrupted: Floats
    """Time in evaluation, or by which steps exceed their neighbours outside the loader and the device's span."""

    syncs: Floats
    """Waits of the host for the device, per step."""

    allocations: Floats
    """Blocks asked from the driver and given back to it, per step."""


def signals_of(windows: Windows) -> Signals:
    """The signals of all windows."""
    wall = windows.wall
    steps = windows.steps
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [windows.total(name) for name in PHASES]
        phases = np.minimum(_sum_of_known(parts) / wall, 1.0)
        complete = sum(parts) / wall
        blocks = _sum_of_known([windows.total("device_allocations"), windows.total("device_frees")]) / steps
        share = {name: windows.total(name) / wall for name in ("loader_wait", "transfer", "device_busy")}
        syncs = windows.total("syncs") / steps
        interrupted = np.fmax(excess_of(windows).by_window, windows.total("evaluation")) / wall
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
    """The steps off the cadence: how long they are beyond it by window, and their numbers."""

    by_window: Floats
    number: Times
    ns: Floats


def excess_of(windows: Windows) -> Excess:
    """Steps that are more than OFF_CADENCE times as long as their window's median, the loader's part left out.

    What the device works in such a step is its own work, not an interruption. Where the CPU is the device, the phases
    are that work: in them a long step is one that was kept off its core.
    """
    number, longest, mean = windows.highest("wall")
    _, waited, waited_mean = windows.highest("loader_wait")
    worked = ("device_busy",) if windows.device is not None or windows.times_device else PHASES
    busy = sum((np.nan_to_num(windows.highest(name)[1]) for name in worked), np.zeros(len(longest)))
    rest = longest - np.nan_to_num(waited)
    usual = _usual(np.maximum(mean - np.nan_to_num(waited_mean), 0.0), windows)
    off = rest > OFF_CADENCE * usual
    beyond = np.where(off, np.minimum(rest - usual, np.maximum(rest - busy, 0.0)), 0.0)
    by_window = np.bincount(windows.window_of_steps, beyond, len(windows)).astype(float)
    return Excess(by_window, number[off & (beyond > 0)], beyond[off & (beyond > 0)])


def _usual(values: Floats, windows: Windows) -> Floats:
    """For each row of steps the median of its window; of the whole run where the window has few."""
    if not len(values):
        return values
    usual = np.full(len(windows), float(np.median(values)))
    cuts = np.flatnonzero(np.diff(windows.window_of_steps)) + 1
    for rows in np.split(np.arange(len(values)), cuts):
        if len(rows) >= ENOUGH_ROWS:
            usual[windows.window_of_steps[rows[0]]] = np.median(values[rows])
    return np.asarray(usual[windows.window_of_steps])


def _sum_of_known(parts: list[Floats]) -> Floats:
    """The sum of those that are known; NaN where none is."""
    table = np.array(parts)
    return np.where(np.isnan(table).all(axis=0), np.nan, np.nansum(table, axis=0))
