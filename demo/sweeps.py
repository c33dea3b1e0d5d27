"""The recorded sweeps over the loader's workers: measured step times, and those `what-if` expects from the first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.index import read_index
from demo.pairs import PAIRS
from tb_bottleneck.commands.arguments import open_run
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.schema.comparison_pb2 import Prediction

_HEAD = (
    "| sweep | workers | measured | expected from {first} | interval | error |",
    "|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep. Times are in ns per step, without a profiler; `first_ns` is the first run's time."""

    sweep: str
    workers: int
    measured_ns: float
    first_ns: float
    prediction: Prediction | None  # from the first run alone; None for the first run, and without a prediction

    @property
    def expected_ns(self) -> float | None:
        """The first run's time divided by the expected speed-up."""
        return None if self.prediction is None else self.first_ns / self.prediction.speedup

    @property
    def error(self) -> float | None:
        """The relative error of the expected time: 0.1 means that it is 10 % too long."""
        return None if self.expected_ns is None else self.expected_ns / self.measured_ns - 1


def runs(logdir: Path) -> Iterator[SweepRun]:
    """Yields the runs of each sweep that includes its first setting, ordered by workers."""
    index: dict[str, Any] = read_index(logdir)["pairs"]
    for name, pair in PAIRS.items():
        folders = [folder for folder in pair.variants if pair.sweep and folder in index.get(name, {})]
        if not folders or folders[0] != next(iter(pair.variants)):
            continue
        times = [float(index[name][folder]["unprofiled"]["ns_per_step"]) for folder in folders]
        first = open_run(str(logdir / name / folders[0]))
        for folder, measured in zip(folders, times, strict=True):
            workers = pair.variants[folder][0]
            answer = what_if(first, WhatIfOptions(workers=workers)) if folder != folders[0] else None
            prediction = answer.after if answer is not None and answer.HasField("after") else None
            yield SweepRun(name, workers, measured, times[0], prediction)


def lines_of(swept: Sequence[SweepRun]) -> list[str]:
    """Returns the table in Markdown; empty without runs."""
    if not swept:
        return []
    lines = [_HEAD[0].format(first=f"{swept[0].workers} workers"), _HEAD[1]]
    for run in swept:
        expected, interval, error = "", "", ""
        if run.expected_ns is not None and run.prediction is not None and run.error is not None:
            expected, error = ms(run.expected_ns), f"{run.error:+.0%}"
            interval = f"{ms(run.first_ns / run.prediction.high)} to {ms(run.first_ns / run.prediction.low)}"
        cells = (run.sweep, str(run.workers), ms(run.measured_ns), expected, interval, error)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def ms(ns: float) -> str:
    """Formats a time in milliseconds for the tables."""
    return f"{ns / 1e6:.1f} ms"
