"""The share of a training's time in useful steps.

    goodput = steps x median step time / time from the first step's start to the last step's end

All steps count, as nothing shows that one was lost. The median is that of the judged steps: without warm-up and
without a profiler. Time before the first step, such as that of imports, is not recorded. Google's
ml-goodput-measurement divides productive time by elapsed time likewise, and subtracts steps repeated after a restart.
"""

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.efficiency.figure import Figure, known, unknown
from tb_bottleneck.order_statistics import percentile
from tb_bottleneck.units import duration_text


def goodput(recording: TelemetryRecording) -> Figure:
    """Returns the share, at most 1."""
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
