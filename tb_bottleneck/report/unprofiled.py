"""The step time without a profiler next to the recorded one."""

from collections.abc import Sequence
from string import Template

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.telemetry_texts import telemetry_advice
from tb_bottleneck.measures.trace.profiler_overhead import SHORTEST_UNPROFILED, logged_unprofiled
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import duration_text

# A profiler with a lower cost changes no share enough to mention it (calibration method of the replay).
MIN_PROFILER_COST = 0.05
# Reasons of the health that state the difference already.
STATED_BY = ("profiler_overhead", "atypical_steps")


def trace_unprofiled(recording: Recording, defects: Sequence[Defect]) -> pb.Unprofiled | None:
    """Returns the step time that the recording's own process measured before it recorded; None if it did not."""
    logged = logged_unprofiled(recording)
    if logged is None:
        return None
    codes = [defect.code for defect in defects]
    recorded = float((np.mean if logged.times else np.median)(recording.steps.durations))
    return unprofiled_of(logged.median, logged.steps, recorded, codes, logged.times)


def unprofiled_of(
    step_ns: float, steps: int, recorded_ns: float, health: Sequence[str], times: Sequence[float] = ()
) -> pb.Unprofiled:
    """Returns both times and their ratio, with a sentence unless a reason of the `health` (codes) states them.

    `step_ns` is the median of the steps in ns. With all `times` in ns, the ratio is that of the means.
    """
    typical = float(np.mean(times)) if times else step_ns
    ratio, average = recorded_ns / typical, "mean" if times else "median"
    sentence = ""
    if not any(code in health for code in STATED_BY):
        sentence = _profiler_cost(ratio).safe_substitute(
            unprofiled=duration_text(typical),
            recorded=duration_text(recorded_ns),
            ratio=f"{ratio:.2f}",
            average=f"{average} of {steps:,} steps" if steps else average,
        )
    return pb.Unprofiled(step_ns=step_ns, steps=steps, ratio=ratio, sentence=sentence, step_times_ns=times)


def step_ns_of(report: pb.Report) -> float | None:
    """Returns the step time of the training in ns: without the profiler if that was measured, else as recorded.

    It is a mean; the median if only that was logged without the profiler. None if no step was timed.
    """
    unprofiled = report.unprofiled
    if report.HasField("unprofiled"):
        return float(np.mean(unprofiled.step_times_ns)) if unprofiled.step_times_ns else unprofiled.step_ns
    return report.window.step_ns.mean if report.window.HasField("step_ns") else None


def _profiler_cost(ratio: float) -> Template:
    """Returns the sentence about recorded steps that take `ratio` times as long as unprofiled ones."""
    texts = telemetry_advice().cross_check
    if ratio > 1 / SHORTEST_UNPROFILED:
        return texts["recorded_steps_slower"]
    if ratio - 1 >= MIN_PROFILER_COST:
        return texts["profiler_slows"]
    return texts["recorded_steps_faster" if 1 - ratio >= MIN_PROFILER_COST else "profiler_cheap"]
