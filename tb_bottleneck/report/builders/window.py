"""The judged part of a recording as the report shows it: its steps and their times."""

import numpy as np
import numpy.typing as npt

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.base.order_statistics import percentile
from tb_bottleneck.base.record import Record
from tb_bottleneck.base.text import duration_text
from tb_bottleneck.knowledge.advice_texts import telemetry_advice

MAX_STEP_TIMES = 60
"""Number of step times that a report shows."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Window(Record, frozen=True):
    """[begin, end) in ns on the recording's own clock; for telemetry since 1970.

    `spread` is the 10th percentile, the median and the 90th percentile of the step times in ns; None if no step was
    recorded. `step_times` are at most MAX_STEP_TIMES, each the longest of a group of neighbours: the rare long steps
    matter. `recorded_mean` is the mean step time in ns with the profiler's own time, if that was removed, and
    `correction` a sentence about it.
    """

    steps: int
    basis: str
    begin: int
    end: int
    spread: tuple[float, float, float] | None
    step_times: tuple[float, ...]
    recorded_mean: float | None = None
    correction: str = ""


def trace_window(recording: Recording) -> Window:
    """Returns the judged window of a trace."""
    steps = recording.steps
    durations = steps.durations.astype(np.float64)
    return Window(
        steps=len(steps),
        basis=steps.basis,
        begin=int(steps.begin),
        end=int(steps.end),
        spread=spread_of(durations),
        step_times=longest_of_neighbours(durations),
        recorded_mean=float(recording.as_recorded.steps.durations.mean()) if recording.correction is not None else None,
        correction=correction_text(recording),
    )


def correction_text(recording: Recording) -> str:
    """Returns the sentence about the profiler's time that was removed; empty if none was."""
    correction = recording.correction
    if correction is None:
        return ""
    texts = telemetry_advice().cross_check
    recorded, left = recording.as_recorded.steps.durations.mean(), recording.steps.durations.mean()
    sentences = (
        "corrected",
        "costs_measured" if correction.costs.measured else "costs_estimated",
        "costs_adjusted" if correction.solved else "costs_uncertain",
    )
    figures = {"recorded": duration_text(float(recorded)), "removed": duration_text(float(recorded - left))}
    figures["version"] = correction.costs.version
    return " ".join(texts[name].safe_substitute(figures) for name in sentences)


def spread_of(times: Floats, counts: Ints | None = None) -> tuple[float, float, float]:
    """Returns the 10th percentile, the median and the 90th percentile. With `counts`, each counts that many times."""
    return percentile(times, 10, counts), percentile(times, 50, counts), percentile(times, 90, counts)


def longest_of_neighbours(times: Floats) -> tuple[float, ...]:
    """Returns at most MAX_STEP_TIMES of the times, each the longest of a group of neighbours."""
    group = -(-len(times) // MAX_STEP_TIMES)
    return tuple(np.maximum.reduceat(times, np.arange(0, len(times), group)).tolist())
