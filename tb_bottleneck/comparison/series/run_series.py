"""Several runs in a row: a sweep with its knee, settings side by side, or a history and since when it is slower."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun
from tb_bottleneck.comparison.series.regression_point import regression_point_of
from tb_bottleneck.comparison.series.varying_setting import (
    DIFFERENT_WORK,
    HISTORY,
    SETTINGS,
    SWEEP,
    VaryingSetting,
    number_of,
    varying_setting_of,
)
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS, difference, mean_interval
from tb_bottleneck.comparison.texts.speedup import time_text
from tb_bottleneck.comparison.waterfall import waterfall
from tb_bottleneck.comparison.workload.batch_size import batch_size_of
from tb_bottleneck.comparison.workload.similarity import SAME_WORK_FROM, similarity
from tb_bottleneck.knowledge.comparison_texts import series_text, sweep_titles
from tb_bottleneck.measure import Missing
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import duration_text, share_text

# From the knee on, all that more of the same could bring is this share of the best throughput.
KNEE_GAIN_LEFT = 0.1
# Runs with one setting that differ by more than one training does from itself when it is started again.
REPEATS_DIFFER_FROM = 0.1
# A regime that makes up this much of a difference is what it is about.
MAIN_REGIME_FROM = 0.5


@dataclass(frozen=True, eq=False)
class SeriesGroup:
    """The runs with one setting. `times` are of their steps, per step or sample, in ns, run by run."""

    runs: tuple[ComparedRun, ...]
    value: str
    times: tuple[Floats, ...]
    ns: dict[Regime, float]

    @property
    def mean(self) -> float:
        """Time per step or sample, in ns."""
        return sum(self.ns.values())

    @property
    def every(self) -> Floats:
        """Times of all steps."""
        return np.concatenate(self.times)


def series_of(runs: Sequence[JudgedRun | UnjudgedRun]) -> pb.RunSeries:
    """The row that these runs make: in the order of what varies where that is a number, else as they were given."""
    judged = [run for run in runs if isinstance(run, ComparedRun)]
    told = pb.RunSeries(schema=SCHEMA, per="step", varies="run", kind=HISTORY)
    told.notes.extend(reason for run in runs if isinstance(run, UnjudgedRun) for reason in run.because)
    left_out = [run.name for run in runs if isinstance(run, JudgedRun) and not isinstance(run, ComparedRun)]
    told.notes.extend(series_text("reported").safe_substitute(run=name) for name in left_out)
    if len(judged) < 2:
        told.headline = series_text("few").safe_substitute()
        return told
    unlike = _unlike(judged)
    varied = varying_setting_of(judged)
    if unlike:
        varied = VaryingSetting(DIFFERENT_WORK, "run", tuple(run.name for run in judged), ())
    told.varies, told.kind = varied.title, varied.kind
    told.per, row = _placed(judged, varied)
    for position, one in enumerate(row):
        told.points.append(_point(one, row[max(position - 1, 0)], row[0]))
    told.notes.extend([*_lone(row), *unlike, *_several(varied)])
    told.headline = series_text("unlike").safe_substitute() if unlike else _headline(told, row)
    return told


def _headline(told: pb.RunSeries, row: list[SeriesGroup]) -> str:
    if told.kind == HISTORY:
        return _history(told, row)
    told.notes.extend(_repeats(row))
    return _sweep(told, row) if told.kind == SWEEP else _settings(told, row)


def _placed(runs: list[ComparedRun], varied: VaryingSetting) -> tuple[str, list[SeriesGroup]]:
    """What times are per, and the runs by their setting, in order; else each run is for itself."""
    batches = [batch_size_of(run.recording) for run in runs]
    sizes = [batch.samples for batch in batches if not isinstance(batch, Missing)]
    differ = len(sizes) == len(runs) and len(set(sizes)) > 1
    used = sizes if differ else [1] * len(runs)
    groups: dict[str, list[tuple[ComparedRun, int]]] = {}
    for position, (run, value, size) in enumerate(zip(runs, varied.values, used, strict=True)):
        key = value if varied.kind in (SWEEP, SETTINGS) else f"{position}"
        groups.setdefault(key, []).append((run, size))
    names = tuple(groups) if varied.kind in (SWEEP, SETTINGS) else varied.values
    row = [_pooled(name, group) for name, group in zip(names, groups.values(), strict=True)]
    if varied.kind == SWEEP:
        row.sort(key=lambda one: number_of(one.value) or 0.0)
    elif varied.kind == SETTINGS:
        row.sort(key=lambda one: -one.mean)
    return ("sample" if differ else "step"), row


def _pooled(value: str, group: list[tuple[ComparedRun, int]]) -> SeriesGroup:
    """Every run counts alike, however many steps it has."""
    times = tuple(np.asarray(run.durations / size, np.float64) for run, size in group)
    ns = {regime: float(np.mean([run.ns[regime] / size for run, size in group])) for regime in REGIMES}
    return SeriesGroup(tuple(run for run, _ in group), value, times, ns)


def _point(one: SeriesGroup, before: SeriesGroup, first: SeriesGroup) -> pb.RunPoint:
    low, high = mean_interval(one.every) if len(one.times) == 1 else _range(one)
    return pb.RunPoint(
        run=one.runs[0].name,
        runs=[run.name for run in one.runs],
        value=one.value,
        ns=one.mean,
        low_ns=low,
        high_ns=high,
        speedup=first.mean / one.mean,
        regime=one.runs[0].report.verdict.regime,
        steps=sum(len(times) for times in one.times),
        by_regime=waterfall(before.ns, one.ns),
    )


def _range(one: SeriesGroup) -> tuple[float, float]:
    """The shortest and the longest mean of the runs with one setting, in ns."""
    means = [float(np.mean(times)) for times in one.times]
    return min(means), max(means)


def _unlike(runs: list[ComparedRun]) -> list[str]:
    """Runs that hardly do the work of the one before them."""
    pairs = [(before, one, similarity(before.recording, one.recording)) for before, one in pairwise(runs)]
    return [
        f"{one.name} hardly does the same work as {before.name}: {share_text(alike)} of the operators agree."
        for before, one, alike in pairs
        if not isinstance(alike, Missing) and alike < SAME_WORK_FROM
    ]


def _lone(row: list[SeriesGroup]) -> list[str]:
    """Runs of which one step is known."""
    lone = [
        run.name
        for one in row
        for run, times in zip(one.runs, one.times, strict=True)
        if len(times) < MIN_COMPARED_STEPS
    ]
    return [series_text("lone").safe_substitute(runs=", ".join(dict.fromkeys(lone)))] if lone else []


def _several(varied: VaryingSetting) -> list[str]:
    if varied.kind != HISTORY or len(varied.differ) == 0:
        return []
    return [series_text("several").safe_substitute(what=", ".join(varied.differ[:6]))]


def _repeats(row: list[SeriesGroup]) -> list[str]:
    """Settings whose own runs differ: then what else differs between them matters too."""
    found = []
    for one in row:
        shortest, longest = _range(one)
        if len(one.times) > 1 and longest / shortest > 1 + REPEATS_DIFFER_FROM:
            runs = ", ".join(run.name for run in one.runs)
            said = {"value": one.value, "spread": share_text(longest / shortest - 1), "runs": runs}
            found.append(series_text("repeats").safe_substitute(said))
    return found


def _sweep(told: pb.RunSeries, row: list[SeriesGroup]) -> str:
    first, last, best = row[0], row[-1], min(row, key=lambda one: one.mean)
    level = last is not first and _in_noise(first, last)
    said = {
        "varies": told.varies,
        "per": told.per,
        "first": first.value,
        "last": last.value,
        "goes": "goes" if level else "falls" if last.mean < first.mean else "rises",
        "from": duration_text(first.mean),
        "to": duration_text(last.mean),
        "at": best.value,
    }
    shortest = series_text("best").safe_substitute(said, best=duration_text(best.mean)) if best is not last else ""
    where = _where(first, best if best is not first else last)
    headline = series_text("sweep").safe_substitute(said, best=shortest, where=where)
    if told.varies == sweep_titles()["world_size"]:
        return headline + series_text("ranks").safe_substitute()
    if best is first and level:
        headline += series_text("noise_last").safe_substitute()
    if best is not first and _in_noise(first, best):
        return headline + series_text("noise").safe_substitute()
    if first.mean / best.mean < 1 / (1 - KNEE_GAIN_LEFT):
        return headline + series_text("flat").safe_substitute()
    knee = next(one for one in row if best.mean / one.mean >= 1 - KNEE_GAIN_LEFT)
    if knee is last:
        return headline + series_text("open").safe_substitute(said)
    best_time, ns = duration_text(best.mean), duration_text(knee.mean)
    because = series_text("knee").safe_substitute(said, value=knee.value, ns=ns, best=best_time)
    told.knee.MergeFrom(pb.Knee(run=knee.runs[0].name, value=knee.value, because=because))
    return headline


def _settings(told: pb.RunSeries, row: list[SeriesGroup]) -> str:
    """The row is in order of time, the longest first."""
    worst, best = row[0], row[-1]
    said = {"varies": told.varies, "per": told.per, "at": best.value, "best": duration_text(best.mean)}
    said |= {"worst_at": worst.value, "worst": duration_text(worst.mean)}
    if _in_noise(worst, best):
        return series_text("one_setting").safe_substitute(said, **{"from": said["worst"], "to": said["best"]})
    return series_text("settings").safe_substitute(said, where=_where(worst, best))


def _in_noise(a: SeriesGroup, b: SeriesGroup) -> bool:
    """Whether their steps do not tell them apart; of one step alone that is not known, and the times are told."""
    steps = a.every, b.every
    return min(map(len, steps)) >= MIN_COMPARED_STEPS and not difference(*steps).significant


def _where(before: SeriesGroup, after: SeriesGroup) -> str:
    """The regime that makes most of the difference between two settings; empty where none does."""
    whole = after.mean - before.mean
    regime = max(REGIMES, key=lambda one: (after.ns[one] - before.ns[one]) * np.sign(whole))
    if not whole or (after.ns[regime] - before.ns[regime]) / whole < MAIN_REGIME_FROM:
        return ""
    times = {"before": time_text(before.ns[regime]), "after": time_text(after.ns[regime])}
    return series_text("where").safe_substitute(times, title=Regime(regime).label.lower())


def _history(told: pb.RunSeries, row: list[SeriesGroup]) -> str:
    times = {"from": duration_text(row[0].mean), "to": duration_text(row[-1].mean)}
    headline = series_text("row").safe_substitute(times, per=told.per, count=len(row))
    found = regression_point_of(
        [one.value for one in row], [one.every for one in row], [one.ns for one in row], told.per
    )
    if found is None:
        return headline + series_text("steady").safe_substitute(least="5 %")
    told.regression_point.MergeFrom(found)
    return headline + series_text("slower").safe_substitute(turn=found.because)
