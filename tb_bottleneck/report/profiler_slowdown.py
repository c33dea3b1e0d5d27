"""Compares the step time without a profiler with the recorded step time."""

from collections.abc import Sequence
from string import Template

from tb_bottleneck.base.units import duration_text
from tb_bottleneck.bottlenecks.texts import telemetry_advice
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Smallest relative cost of the profiler that is mentioned. A smaller cost hardly changes the shares (calibration method
# of the replay).
MIN_PROFILER_COST = 0.05
# Largest ratio (recorded / unprofiled step time) that the profiler can explain. In measurements, its costliest options
# doubled the step time, and a step of many small operators may be slowed down more (measures/profiler_overhead.py:
# SHORTEST_UNPROFILED).
MAX_PROFILER_RATIO = 5.0
# Codes of health reasons whose texts already state the difference.
STATED_BY = ("profiler_overhead", "atypical_steps")


def unprofiled_of(
    step_ns: float,
    steps: int,
    recorded_ns: float,
    health: Sequence[str],
    times: Sequence[float] = (),
    corrected: bool = False,
) -> pb.Unprofiled:
    """Returns the step time without a profiler, the ratio of recorded to unprofiled step time, and a sentence about
    both.

    The sentence is empty if a code in `health` is in STATED_BY or `corrected` is True: in both cases, another text
    already states the difference. `recorded_ns` is the recorded step time in ns, `step_ns` the median or the mean of
    `steps` unprofiled steps in ns. If their `times` in ns are given, the ratio uses the mean of the times instead."""
    typical = sum(times) / len(times) if times else step_ns
    ratio, average = recorded_ns / typical, "mean" if times else "median"
    sentence = ""
    if not corrected and not any(code in health for code in STATED_BY):
        sentence = _profiler_cost(ratio).safe_substitute(
            unprofiled=duration_text(typical),
            recorded=duration_text(recorded_ns),
            ratio=f"{ratio:.2f}",
            average=f"{average} of {steps:,} steps" if steps else average,
        )
    return pb.Unprofiled(step_ns=step_ns, steps=steps, ratio=ratio, sentence=sentence, step_times_ns=times)


def _profiler_cost(ratio: float) -> Template:
    """Returns the sentence about recorded steps that take `ratio` times as long as unprofiled ones."""
    texts = telemetry_advice().cross_check
    if ratio > MAX_PROFILER_RATIO:
        return texts["recorded_steps_slower"]
    if ratio - 1 >= MIN_PROFILER_COST:
        return texts["profiler_slows"]
    return texts["recorded_steps_faster" if 1 - ratio >= MIN_PROFILER_COST else "profiler_cheap"]
