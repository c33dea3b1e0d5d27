"""Analyses a series of runs: a sweep, a comparison of settings, or a history with a regression point.

In a sweep, one numeric setting varies. In a history, the runs follow each other in time. Its regression point is the
run from which the series is slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun
from tb_bottleneck.comparison.series.explanations import (
    DIFFERENT_WORK,
    HISTORY,
    SETTINGS,
    SWEEP,
    VaryingSetting,
    number_of,
    regression_point_of,
    varying_setting_of,
)
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS, difference, mean_interval
from tb_bottleneck.comparison.texts.value_text import time_text
from tb_bottleneck.comparison.waterfall import waterfall
from tb_bottleneck.comparison.workload.similarity import similarity
from tb_bottleneck.knowledge.comparison_texts import series_text, sweep_titles
from tb_bottleneck.measures.batch_size import batch_size_of
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.version import SCHEMA

# A throughput that is at most this share below the best one is as good. A choice.
LITTLE_GAIN = 0.1
# Runs with the same setting whose times differ by more are reported. The noise between two runs of a training is
# smaller.
REPEATS_DIFFER_FROM = 0.1
# A regime is the main part of a difference if it has at least this share of it.
MAIN_REGIME_FROM = 0.5


@dataclass(frozen=True, eq=False)
class SeriesGroup:
    """The runs of a series that have the same value of the varying setting. In a history, each group has one run.

    `value` is this value. `times` has for each run the times of its steps without isolated long steps. `ns` is the mean
    time by regime over the runs. All times are in ns per step or per sample.
    """

    runs: tuple[ComparedRun, ...]
    value: str
    times: tuple[Floats, ...]
    ns: dict[Regime, float]

    @property
    def mean(self) -> float:
        """The mean time of the runs per step or per sample, in ns."""
        return sum(self.ns.values())

    @property
    def every(self) -> Floats:
        """The step times of all runs without isolated long steps, in ns per step or per sample."""
        return np.concatenate(self.times)


def series_of(runs: Sequence[JudgedRun | UnjudgedRun]) -> pb.RunSeries:
    """Returns the analysis of a series of runs, in which `runs` are in order of time.

    The points of a sweep are in ascending order of the setting. If the setting is not a number, the points are in
    descending order of time. The points of a history are in the order of `runs`. Runs without a verdict or without a
    trace are left out; notes say so.
    """
    judged = [run for run in runs if isinstance(run, ComparedRun)]
    series = pb.RunSeries(schema=SCHEMA, per="step", varies="run", kind=HISTORY)
    series.notes.extend(reason for run in runs if isinstance(run, UnjudgedRun) for reason in run.because)
    left_out = [run.name for run in runs if isinstance(run, JudgedRun) and not isinstance(run, ComparedRun)]
    series.notes.extend(series_text("report_only").safe_substitute(run=name) for name in left_out)
    if len(judged) < 2:
        series.headline = series_text("few").safe_substitute()
        return series
    work_differs = _unlike(judged)
    setting = varying_setting_of(judged)
    if work_differs:
        setting = VaryingSetting(DIFFERENT_WORK, "run", tuple(run.name for run in judged), ())
    series.varies, series.kind = setting.title, setting.kind
    series.per, groups = _grouped(judged, setting)
    for position, group in enumerate(groups):
        series.points.append(_point(group, groups[max(position - 1, 0)], groups[0]))
    series.notes.extend([*_single_steps(groups), *work_differs, *_several(setting)])
    series.headline = series_text("unlike").safe_substitute() if work_differs else _headline(series, groups)
    return series


def _headline(series: pb.RunSeries, groups: list[SeriesGroup]) -> str:
    """Returns the headline of the series, and adds notes or the regression point to `series`."""
    if series.kind == HISTORY:
        return _history(series, groups)
    series.notes.extend(_repeats(groups))
    return _sweep(series, groups) if series.kind == SWEEP else _settings(series, groups)


def _grouped(runs: list[ComparedRun], setting: VaryingSetting) -> tuple[str, list[SeriesGroup]]:
    """Returns the unit of times ("step", or "sample" if the batch sizes are known and differ), and the runs grouped by
    the value of their setting, in the order of the series. In a history, each run is a group."""
    batches = [batch_size_of(run.recording) for run in runs]
    sizes = [batch.samples for batch in batches if not isinstance(batch, Missing)]
    differ = len(sizes) == len(runs) and len(set(sizes)) > 1
    divisors = sizes if differ else [1] * len(runs)
    by_setting: dict[str, list[tuple[ComparedRun, int]]] = {}
    for position, (run, value, size) in enumerate(zip(runs, setting.values, divisors, strict=True)):
        key = value if setting.kind in (SWEEP, SETTINGS) else f"{position}"
        by_setting.setdefault(key, []).append((run, size))
    names = tuple(by_setting) if setting.kind in (SWEEP, SETTINGS) else setting.values
    groups = [_pooled(name, group) for name, group in zip(names, by_setting.values(), strict=True)]
    if setting.kind == SWEEP:
        groups.sort(key=lambda group: number_of(group.value) or 0.0)
    elif setting.kind == SETTINGS:
        groups.sort(key=lambda group: -group.mean)
    return ("sample" if differ else "step"), groups


def _pooled(value: str, group: list[tuple[ComparedRun, int]]) -> SeriesGroup:
    """Returns the group of the runs with the setting `value`. `group` has each run with the number of samples per step
    (or 1) by which its times are divided. All runs have the same weight, with any number of steps."""
    times = tuple(np.asarray(run.steady / size, np.float64) for run, size in group)
    ns = {regime: float(np.mean([run.ns[regime] / size for run, size in group])) for regime in REGIMES}
    return SeriesGroup(tuple(run for run, _ in group), value, times, ns)


def _point(group: SeriesGroup, before: SeriesGroup, first: SeriesGroup) -> pb.RunPoint:
    """Returns the point of `group`, with the changes by regime from the group `before` it, and the speedup relative to
    the `first` group."""
    low, high = mean_interval(group.every) if len(group.times) == 1 else _range(group)
    return pb.RunPoint(
        run=group.runs[0].name,
        runs=[run.name for run in group.runs],
        value=group.value,
        ns=group.mean,
        low_ns=low,
        high_ns=high,
        speedup=first.mean / group.mean,
        regime=group.runs[0].report.verdict.regime,
        steps=sum(len(times) for times in group.times),
        by_regime=waterfall(before.ns, group.ns),
    )


def _range(group: SeriesGroup) -> tuple[float, float]:
    """Returns the shortest and the longest mean time of a run in the group, in ns per step or per sample."""
    means = [float(np.mean(times)) for times in group.times]
    return min(means), max(means)


def _unlike(runs: list[ComparedRun]) -> list[str]:
    """Returns a note for each run that does different work than the run before it."""
    pairs = [(previous, run, similarity(previous.recording, run.recording)) for previous, run in pairwise(runs)]
    return [
        f"{run.name} does different work than {previous.name}: "
        f"they share {share_text(measured.share)} of the {measured.basis}."
        for previous, run, measured in pairs
        if not isinstance(measured, Missing) and not measured.same_work
    ]


def _single_steps(groups: list[SeriesGroup]) -> list[str]:
    """Returns a list with a note if only one step is known of some runs; otherwise empty."""
    names = [
        run.name
        for group in groups
        for run, times in zip(group.runs, group.times, strict=True)
        if len(times) < MIN_COMPARED_STEPS
    ]
    return [series_text("single_step").safe_substitute(runs=", ".join(dict.fromkeys(names)))] if names else []


def _several(setting: VaryingSetting) -> list[str]:
    """Returns a list with a note about the settings that differ, if the series is a history because of them; otherwise
    empty."""
    if setting.kind != HISTORY or len(setting.differ) == 0:
        return []
    return [series_text("several").safe_substitute(what=", ".join(setting.differ[:6]))]


def _repeats(groups: list[SeriesGroup]) -> list[str]:
    """Returns a note for each group whose runs differ in time by more than REPEATS_DIFFER_FROM although they have the
    same setting."""
    notes = []
    for group in groups:
        shortest, longest = _range(group)
        if len(group.times) > 1 and longest / shortest > 1 + REPEATS_DIFFER_FROM:
            runs = ", ".join(run.name for run in group.runs)
            values = {"value": group.value, "spread": share_text(longest / shortest - 1), "runs": runs}
            notes.append(series_text("repeats").safe_substitute(values))
    return notes


def _sweep(series: pb.RunSeries, groups: list[SeriesGroup]) -> str:
    """Returns the headline of a sweep, whose groups are in ascending order of the setting."""
    first, last, best = groups[0], groups[-1], min(groups, key=lambda group: group.mean)
    no_trend = last is not first and _in_noise(first, last)
    values = {
        "varies": series.varies,
        "per": series.per,
        "first": first.value,
        "last": last.value,
        "goes": "goes" if no_trend else "falls" if last.mean < first.mean else "rises",
        "from": duration_text(first.mean),
        "to": duration_text(last.mean),
        "at": best.value,
    }
    shortest = series_text("best").safe_substitute(values, best=duration_text(best.mean)) if best is not last else ""
    where = _where(first, best if best is not first else last)
    headline = series_text("sweep").safe_substitute(values, best=shortest, where=where)
    if series.varies == sweep_titles()["world_size"]:
        return headline + series_text("ranks").safe_substitute()
    if best is first and no_trend:
        headline += series_text("noise_last").safe_substitute()
    if best is not first and _in_noise(first, best):
        return headline + series_text("noise").safe_substitute()
    if first.mean / best.mean < 1 / (1 - LITTLE_GAIN):
        return headline + series_text("flat").safe_substitute()
    if next(group for group in groups if best.mean / group.mean >= 1 - LITTLE_GAIN) is last:
        return headline + series_text("open").safe_substitute(values)
    return headline


def _settings(series: pb.RunSeries, groups: list[SeriesGroup]) -> str:
    """Returns the headline for a setting that is no number. The groups are in descending order of time."""
    worst, best = groups[0], groups[-1]
    values = {"varies": series.varies, "per": series.per, "at": best.value, "best": duration_text(best.mean)}
    values |= {"worst_at": worst.value, "worst": duration_text(worst.mean)}
    if _in_noise(worst, best):
        return series_text("one_setting").safe_substitute(values, **{"from": values["worst"], "to": values["best"]})
    return series_text("settings").safe_substitute(values, where=_where(worst, best))


def _in_noise(a: SeriesGroup, b: SeriesGroup) -> bool:
    """Returns True if the step times of the groups do not differ beyond the noise. Returns False if a group has a
    single step, because the noise is then unknown."""
    steps = a.every, b.every
    return min(map(len, steps)) >= MIN_COMPARED_STEPS and not difference(*steps).differs


def _where(before: SeriesGroup, after: SeriesGroup) -> str:
    """Returns a text with the regime that has at least MAIN_REGIME_FROM of the difference between two groups; empty if
    there is none."""
    change = after.mean - before.mean
    regime = max(REGIMES, key=lambda regime: (after.ns[regime] - before.ns[regime]) * np.sign(change))
    if not change or (after.ns[regime] - before.ns[regime]) / change < MAIN_REGIME_FROM:
        return ""
    times = {"before": time_text(before.ns[regime]), "after": time_text(after.ns[regime])}
    return series_text("where").safe_substitute(times, title=Regime(regime).label_within)


def _history(series: pb.RunSeries, groups: list[SeriesGroup]) -> str:
    """Returns the headline of a history, whose groups are in order of time, and adds its regression point to `series`
    if there is one."""
    times = {"from": duration_text(groups[0].mean), "to": duration_text(groups[-1].mean)}
    headline = series_text("history").safe_substitute(times, per=series.per, count=len(groups))
    point = regression_point_of(
        [group.value for group in groups], [group.every for group in groups], [group.ns for group in groups], series.per
    )
    if point is None:
        return headline + series_text("steady").safe_substitute(least="5 %")
    series.regression_point.MergeFrom(point)
    return headline + series_text("slower").safe_substitute(regression=point.because)
