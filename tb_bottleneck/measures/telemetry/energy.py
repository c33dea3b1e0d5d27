"""The energy of the GPU board per step, from its counter, otherwise from its sampled power.

The counter is refreshed each 20 to 100 ms, so the energy of one step is that of many steps / their number. Sampled
power misses most of the time on some boards: an A100 and an H100 measure 25 % of it (arXiv 2312.02741). Host, fans and
network are not in it.
"""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.efficiency.figure import Figure, known, unknown
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.units import NS_PER_S

MIN_TIME_NS = 5 * NS_PER_S
"""Shorter times of the counter have an error of more than 4 %: two refreshes of 100 ms."""


def joules_per_step(recording: TelemetryRecording) -> Figure:
    """Returns the energy of a step in J, of the GPU that this process trains on, with the time between steps."""
    windows = recording.windows
    if windows.device is None:
        return unknown("no_board")
    if not windows.steps.sum():
        return unknown("no_steps")
    counted = windows.growth("energy_total", of_device=True)
    if (figure := _per_step(recording, counted, "energy_counter")) is not None:
        return figure
    power = windows.mean("power", of_device=True) * (windows.grid.width / NS_PER_S)
    if (figure := _per_step(recording, power, "sampled_power")) is not None:
        return figure
    return unknown("no_energy")


def _per_step(recording: TelemetryRecording, joules: Floats, basis: str) -> Figure | None:
    """Returns the energy of the windows with a value / their steps; None if they are too short or have no steps."""
    is_known = ~np.isnan(joules)
    steps, time = recording.windows.steps[is_known].sum(), is_known.sum() * recording.windows.grid.width
    if not steps or time < MIN_TIME_NS or not joules[is_known].sum() > 0:
        return None
    return known(float(joules[is_known].sum() / steps), basis, steps=f"{int(steps):,}")
