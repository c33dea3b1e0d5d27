"""What explains a series of runs: a setting that varies, or a run since which the series is slower."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import duration_text
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.significance import Difference, difference
from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE, time_text
from tb_bottleneck.comparison.workload.environment import environment_of
from tb_bottleneck.knowledge.comparison_texts import (
    dependent_facts,
    fact_titles,
    observed_facts,
    series_text,
    sweep_titles,
)
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.table import Floats

RUN = "run"
SWEEP, SETTINGS, HISTORY = "sweep", "settings", "history"
DIFFERENT_WORK = "apart"  # the runs do different work
# Numbers in the context of a trace (its recorded settings), such as clock rates, count as equal if their relative
# difference is at most this value.
NUMBER_TOLERANCE = 0.02


@dataclass(frozen=True)
class VaryingSetting:
    """The setting that varies between the runs of a series.

    `kind` is SWEEP if one numeric setting varies, SETTINGS if one other setting varies, DIFFERENT_WORK if the runs do
    different work, otherwise HISTORY. `title` names the setting in texts. `values` has one value per run; without a
    varying setting, these are the names of the runs. `differ` has the titles of all settings that differ.
    """

    kind: str
    title: str
    values: tuple[str, ...]
    differ: tuple[str, ...]


def varying_setting_of(runs: Sequence[ComparedRun]) -> VaryingSetting:
    """Returns the setting that explains the differences between `runs`: one of sweep_titles that differs, if all other
    recorded differences follow from it.

    Otherwise, the series is a history: several settings differ, or no recorded setting differs.
    """
    facts = [environment_of(run) | _device(run) for run in runs]
    differ = _differing(facts)
    for key, title in sweep_titles().items():
        if key not in differ and not _first_part_differs(key, facts):
            continue
        values = tuple(_first_part(fact[key]) for fact in facts)
        others = differ - dependent_facts(title) - observed_facts() - _facts_titled(title)
        if len(set(values)) > 1 and not others:
            numbers = all(number_of(value) is not None for value in values)
            return VaryingSetting(SWEEP if numbers else SETTINGS, title, values, (title,))
    titles = {**fact_titles(), **sweep_titles()}
    titles_of_differing = tuple(
        dict.fromkeys(titles.get(key, key.replace("_", " ")) for key in sorted(differ - observed_facts()))
    )
    return VaryingSetting(HISTORY, RUN, tuple(run.name for run in runs), titles_of_differing)


def _device(run: ComparedRun) -> dict[str, str]:
    """Returns the name of the run's device as a fact with the key "device"."""
    return {"device": run.report.device.name}


def _first_part_differs(key: str, facts: Sequence[Mapping[str, str]]) -> bool:
    """Returns True if `key` is a fact that follows from the recorded events (observed_facts), and the first part of its
    value differs between runs, such as the main precision. `facts` has the facts of each run."""
    return (
        key in observed_facts()
        and all(key in run_facts for run_facts in facts)
        and len({_first_part(run_facts[key]) for run_facts in facts}) > 1
    )


def _differing(facts: Sequence[Mapping[str, str]]) -> set[str]:
    """Returns the keys of the facts that differ between the runs. `facts` has the facts of each run, from keys to
    values. A fact that some run lacks is ignored."""
    common = set.intersection(*(set(run_facts) for run_facts in facts))
    return {
        key
        for key in common
        if all(run_facts[key] for run_facts in facts) and not _alike([run_facts[key] for run_facts in facts])
    }


def _alike(values: Sequence[str]) -> bool:
    """Returns True if all values are equal. Numbers also count as equal if they differ by at most NUMBER_TOLERANCE
    (relative), unless all of them are whole numbers."""
    numbers = [number_of(value) for value in values]
    if any(number is None for number in numbers) or all(value.isdecimal() for value in values):
        return len(set(values)) == 1
    array = np.array(numbers, np.float64)
    return bool(np.ptp(array) <= NUMBER_TOLERANCE * np.abs(array).max())


def _facts_titled(title: str) -> set[str]:
    """Returns the keys of all facts with this title in sweep_titles."""
    return {key for key, other in sweep_titles().items() if other == title}


def _first_part(value: str) -> str:
    """Returns the first type of a list such as "bf16 (tensor): 90 %, fp32 (vector): 10 %", which takes the most time.
    Other values are returned unchanged."""
    return value.partition(": ")[0] if " %" in value else value


def number_of(value: str) -> float | None:
    """Returns `value` as a number, or None if it is not a finite number."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


MIN_SERIES_RUNS = 2  # one run is neither faster nor slower
Accounts = Sequence[dict[Regime, float]]


def regression_point_of(
    names: Sequence[str], times: Sequence[Floats], accounts: Accounts, per: str
) -> pb.RegressionPoint | None:
    """Returns the run from which the series is slower beyond the noise, or None if there is no such run.

    `names`, `times` and `accounts` have one element per run, in order of time: its name, its step times, and its mean
    time by regime, in ns per `per` ("step" or "sample"). The series is split into two parts at the place where the sum
    of the squared deviations of log time within the parts is smallest. The first run of the later part is the result if
    this part takes at least RELEVANT_CHANGE longer, and the step times of the parts differ beyond the noise
    (significance.py). If the later part is faster by at least as much, the search continues within the later part.
    """
    begin = 0
    while len(times) - begin >= MIN_SERIES_RUNS:
        at, slowdown = _best_split(accounts[begin:])
        at += begin
        result = difference(np.concatenate(times[begin:at]), np.concatenate(times[at:]))
        if not result.differs or 1 / (1 + RELEVANT_CHANGE) < slowdown < 1 + RELEVANT_CHANGE:
            return None
        if slowdown > 1:
            parts = _mean(accounts[begin:at]), _mean(accounts[at:])
            return _described(names[begin:], at - begin, parts, (per, slowdown, result), begin > 0)
        begin = at
    return None


def _best_split(accounts: Accounts) -> tuple[int, float]:
    """Returns the index of the first run of the later part, and (mean time of the later part / mean time of the earlier
    part), for the split with the smallest squared deviation of log time within the parts. Means are geometric.
    `accounts` has the mean time by regime of each run."""
    means = np.log([sum(account.values()) for account in accounts])
    splits = range(1, len(means))
    at = min(
        splits, key=lambda split: float(np.var(means[:split]) * split + np.var(means[split:]) * (len(means) - split))
    )
    return at, float(np.exp(means[at:].mean() - means[:at].mean()))


def _described(
    names: Sequence[str],
    at: int,
    parts: tuple[dict[Regime, float], dict[Regime, float]],
    how: tuple[str, float, Difference],
    cut: bool,
) -> pb.RegressionPoint:
    """Returns the regression point at the run names[at], with a sentence about it.

    `parts` are the mean times by regime in ns of the runs before names[at], and of the runs from names[at] on. `how`
    has the unit ("step" or "sample"), the ratio of the times, and the test of their difference. `cut` is True if
    `names` lacks the first runs of the series.
    """
    (before, after), (per, slowdown, result) = parts, how
    regime = max(before, key=lambda name: after[name] - before[name])
    since_when = f"from {names[0]} to {names[at - 1]}" if at > 1 else f"in {names[0]}"
    because = series_text("regression").safe_substitute(
        {
            "since": names[at],
            "when": since_when if cut else f"up to {names[at - 1]}",
            "per": per,
            "slowdown": f"{slowdown:.2f}",
            "from": duration_text(sum(before.values())),
            "to": duration_text(sum(after.values())),
            "title": Regime(regime).label_within,
            "before": time_text(before[regime]),
            "after": time_text(after[regime]),
            "test": result.test,
        }
    )
    return pb.RegressionPoint(
        since=names[at], last_good=names[at - 1], regime=regime, slowdown=slowdown, because=because
    )


def _mean(accounts: Accounts) -> dict[Regime, float]:
    """Returns the mean time by regime over the runs, in ns."""
    return {regime: float(np.mean([account[regime] for account in accounts])) for regime in accounts[0]}
