"""What tells the runs of a row apart: one setting that people sweep, several things, or nothing that was recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.workload.environment import environment_of
from tb_bottleneck.knowledge.comparison_texts import dependent_facts, fact_titles, observed_facts, sweep_titles

RUN = "run"
SWEEP, SETTINGS, HISTORY = "sweep", "settings", "history"
DIFFERENT_WORK = "apart"  # runs that do not do the same work
# A number of a context that differs by less is a clock that was read twice.
NUMBER_TOLERANCE = 0.02


@dataclass(frozen=True)
class VaryingSetting:
    """`kind` is SWEEP where one number varies, SETTINGS where one other thing does, else HISTORY.

    `title` says what varies, `values` its value on each side; of a history they are the runs' own names. `differ` are
    the titles of all that differs.
    """

    kind: str
    title: str
    values: tuple[str, ...]
    differ: tuple[str, ...]


def varying_setting_of(runs: Sequence[ComparedRun]) -> VaryingSetting:
    """The one thing that people sweep and that alone differs, but for what follows from it."""
    facts = [environment_of(run) | _device(run) for run in runs]
    differ = _differing(facts)
    for key, title in sweep_titles().items():
        if key not in differ and not _leads(key, facts):
            continue
        values = tuple(_main(one[key]) for one in facts)
        beside = differ - dependent_facts(title) - observed_facts() - _namesakes(title)
        if len(set(values)) > 1 and not beside:
            numbers = all(number_of(value) is not None for value in values)
            return VaryingSetting(SWEEP if numbers else SETTINGS, title, values, (title,))
    titles = {**fact_titles(), **sweep_titles()}
    told = tuple(dict.fromkeys(titles.get(key, key.replace("_", " ")) for key in sorted(differ - observed_facts())))
    return VaryingSetting(HISTORY, RUN, tuple(run.name for run in runs), told)


def _device(run: ComparedRun) -> dict[str, str]:
    """The device's name, only where the recording tells it: what kind it is, is no setting."""
    return {"device": run.report.device.name}


def _leads(key: str, facts: Sequence[Mapping[str, str]]) -> bool:
    """Whether a fact that runs only show, as the precision, differs in what comes first in it."""
    return key in observed_facts() and all(key in one for one in facts) and len({_main(one[key]) for one in facts}) > 1


def _differing(facts: Sequence[Mapping[str, str]]) -> set[str]:
    """Facts that all sides know and that differ. What one side does not know tells nothing."""
    known = set.intersection(*(set(one) for one in facts))
    return {key for key in known if all(one[key] for one in facts) and not _alike([one[key] for one in facts])}


def _alike(values: Sequence[str]) -> bool:
    numbers = [number_of(value) for value in values]
    if any(number is None for number in numbers) or all(value.isdecimal() for value in values):
        return len(set(values)) == 1
    found = np.array(numbers, np.float64)
    return bool(np.ptp(found) <= NUMBER_TOLERANCE * np.abs(found).max())


def _namesakes(title: str) -> set[str]:
    """All facts that tell the thing with this title."""
    return {key for key, other in sweep_titles().items() if other == title}


def _main(value: str) -> str:
    """The first of a list of types with their shares: what most of the time is spent in."""
    return value.partition(": ")[0] if " %" in value else value


def number_of(value: str) -> float | None:
    """The number that a value spells; None where it spells none."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
