"""The figures of efficiency that telemetry gives, such as the energy of a step and the share of time in useful steps.

Figures that need the number of operations of a step (MFU, HFU) are not known from telemetry.
"""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.units import NS_PER_S, duration_text
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.telemetry.bounded_columns import Floats

MIN_TIME_NS = 5 * NS_PER_S
"""Over shorter times, the error of the energy counter exceeds 4 %. The error is two refreshes of the counter, of 100 ms
each."""


def joules_per_step(recording: TelemetryRecording) -> Figure:
    """Returns the energy per step in J of the GPU on which this process trains, including the time between steps.

    The energy comes from the energy counter of the board, otherwise from its sampled power. The counter is refreshed
    every 20 to 100 ms, so the energy of many steps is divided by their number. Some boards measure power during a part
    of the time only: an A100 and an H100 during 25 % of it (arXiv 2312.02741). Host, fans and network are not included.
    """
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
    """Returns the energy per step in J. `joules` has the energy of each window in J; NaN if the energy is not known.
    Returns None if the windows with a value are shorter than MIN_TIME_NS in total, have no steps, or have no energy.
    `basis` is the key of the sentence about the source of the energy."""
    is_known = ~np.isnan(joules)
    steps, time = recording.windows.steps[is_known].sum(), is_known.sum() * recording.windows.grid.width
    if not steps or time < MIN_TIME_NS or not joules[is_known].sum() > 0:
        return None
    return known(float(joules[is_known].sum() / steps), basis, steps=f"{int(steps):,}")


def goodput(recording: TelemetryRecording) -> Figure:
    """Returns the share of a training's time in useful steps, at most 1.

        goodput = steps x median step time / time from the first step's start to the last step's end

    All steps count, because nothing shows that a step had to be repeated. The median is taken over the judged steps,
    which exclude warm-up and profiled steps. Time before the first step, such as imports, is not included. Google's
    ml-goodput-measurement also divides productive time by elapsed time, and subtracts steps repeated after a restart.
    """
    steps = recording.telemetry.steps
    _, _, judged = recording.windows.highest("wall")
    if not len(steps) or not len(judged):
        return unknown("no_steps")
    wall, count = steps.column("wall").mean, steps.count
    elapsed = float(steps.end[-1] - (steps.end[0] - wall[0] * count[0]))
    if not elapsed > 0:
        return unknown("no_steps")
    median = percentile(judged, 50, recording.windows.counts_of_steps)
    total = int(count.sum())
    return known(min(total * median / elapsed, 1.0), "all_steps", steps=f"{total:,}", time=duration_text(elapsed))


_OF_THE_OPERATIONS = ("mfu", "hfu", "model_flops_per_step", "peak_flops")
_OF_A_TRACE = ("tensor_share", "tokens_per_step")


def telemetry_figures(recording: TelemetryRecording) -> Figures:
    """Returns the figures of efficiency by name. For figures that telemetry cannot give, the value is None and the text
    is the reason."""
    return {
        **dict.fromkeys(_OF_THE_OPERATIONS, unknown("telemetry_only")),
        **dict.fromkeys(_OF_A_TRACE, unknown("needs_trace")),
        "samples_per_step": _figure(recording.per_step("samples", "count"), "monitor"),
        "goodput": goodput(recording),
        "joules_per_step": joules_per_step(recording),
    }


def _figure(measure: Measure | Missing, basis: str) -> Figure:
    """Returns `measure` as a figure. `basis` is the key of the sentence about the measure's source."""
    if isinstance(measure, Missing):
        return unknown("as_stated", because=measure.because)
    return known(measure.value, basis)
