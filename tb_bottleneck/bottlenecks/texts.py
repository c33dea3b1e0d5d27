"""Texts about bottlenecks: those in texts.toml of each bottleneck, and those that reports about telemetry share."""

import re
from collections.abc import Mapping
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks import FOLDER, names
from tb_bottleneck.knowledge.catalogue import Source, load, typed
from tb_bottleneck.knowledge.memory_texts import memory_titles


class EvidenceLine(Record, frozen=True):
    """A line of evidence: the `measure`, its `label`, and `compared_with`, a text about the reference for the measure.

    An optional line is left out if its measure is missing. `compared_with_context` replaces `compared_with` if the
    training process recorded the measure as a fact; it is empty if the reference stays the same."""

    measure: str
    label: str
    compared_with: str = ""
    optional: bool = False
    compared_with_context: str = ""


class CauseAdvice(Record, frozen=True):
    """The texts of a finding about one cause: title, summary, advised code, how to confirm it, evidence and
    headline.

    `documentation` is the URL of the official documentation of the fix. `trial` is the change of `tb-bottleneck try`
    that measures the fix, or EDITED if it is an edit of the program. `unsimulated` says why the gain is not simulated.
    Each is empty if there is none."""

    title: str
    summary: str
    code: Template  # may use the figures of the evidence, as $measure
    confirm: str
    source: Source
    evidence: tuple[EvidenceLine, ...] = ()
    headline: Template | None = None  # replaces the headline of the regime; may use the evidence, as $measure
    action: str = ""  # the change in a few words; empty for the title of the scenario, or if there is no change
    documentation: str = ""
    trial: str = ""
    unsimulated: str = ""


class RegimeAdvice(Record, frozen=True, rename={"causes": "cause"}):
    """The texts of a regime. All texts except `meaning` are templates, in which values such as $share are filled in."""

    meaning: str
    headline: Template
    because: Mapping[str, Template]
    causes: Mapping[str, CauseAdvice] = {}


class Assumption(Record, frozen=True, rename={"text": "assumes"}):
    """The texts of one scenario.

    `title` names the fix in a few words. `text` says what must be true for the fix to have the predicted effect.
    `needs` says what a recording lacks if the fix cannot be simulated; it is empty if the fix can always be simulated.
    """

    name: str
    title: str
    text: str
    source: Source
    needs: str = ""


def _file(name: str) -> str:
    return f"{name}/texts.toml"


@cache
def _texts(name: str) -> Mapping[str, Any]:
    """Returns the content of texts.toml of the bottleneck `name`; empty if it has none."""
    return load(_file(name), FOLDER) if (FOLDER / _file(name)).exists() else {}


@cache
def regime_advice(regime: str) -> RegimeAdvice:
    """Returns the texts of `regime` and its causes. Raises Unsourced if a cause has no source."""
    return typed(_file(regime), RegimeAdvice, _texts(regime))


@cache
def _causes() -> Mapping[str, Mapping[str, Any]]:
    """Returns the texts of each cause of a bottleneck, by its name; of a cause of traces and telemetry, those for
    traces."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in names():
        found |= _texts(name).get("telemetry", {}).get("cause", {})
    for name in names():
        found |= _texts(name).get("cause", {})
    return found


@cache
def _guides() -> Mapping[str, str]:
    return {cause: guide["url"] for guide in load("guides.toml")["guide"] for cause in guide["causes"]}


def guide_of(cause: str) -> str:
    """Returns the URL of the official documentation of the fix of `cause`, from texts.toml or, for causes of jobs and
    memory problems, from guides.toml; empty if there is none."""
    return str(_causes().get(cause, {}).get("documentation", "")) or _guides().get(cause, "")


@cache
def assumptions() -> Mapping[str, Assumption]:
    """Returns the texts of all scenarios, by the name of the scenario."""
    found = [typed(_file(name), tuple[Assumption, ...], _texts(name).get("scenario", ())) for name in names()]
    return {texts.name: texts for each in found for texts in each}


@cache
def unsimulated() -> Mapping[str, str]:
    """Returns for each cause without a scenario the reason why its gain is not simulated, as a complete sentence."""
    return {cause: texts["unsimulated"] for cause, texts in _causes().items() if "unsimulated" in texts}


@cache
def word(key: str) -> Template:
    """Returns the template of a sentence about the replay. `key` is a key of the table `words` in scenarios.toml.

    Raises KeyError for any other key.
    """
    return Template(load("scenarios.toml")["words"][key])


EDIT, EDITED = "--rev BRANCH", "edit"
_NUMBERS = {"workers": r"num_workers=(\d{1,4})\b", "threads": r"set_num_threads\((\d{1,4})\)|THREADS=(\d{1,4})\b"}


def trial_of(cause: str, code: str) -> str:
    """Returns the change of `tb-bottleneck try` that measures the fix of `cause`; empty if `try` cannot measure it.

    If no setting makes the fix, the change is an edit of the code, which is tried as a branch.

    `code` is the code of the fix. The number of workers or threads in `code` is tried; if `code` has none, a few usual
    numbers are tried. If `code` uses float16, the result is empty: a trial of bfloat16 would measure another fix, and
    float16 needs a scaler in the training loop, which no setting adds.
    """
    change = str(_causes().get(cause, {}).get("trial", ""))
    if change == EDITED:
        return f"{EDIT} --cause {cause}"  # with --cause, the ledger contains the gain that the finding predicted
    if "bf16" in change.split() and "torch.float16" in code:
        return ""
    values = {}
    for name, pattern in _NUMBERS.items():
        found = re.search(pattern, code)
        values[name] = next(filter(None, found.groups())) if found else "1,2,4"
    return Template(change).safe_substitute(values)


class TelemetryAdvice(
    Record, frozen=True, rename={"causes": "cause", "lines": "evidence", "unknown_titles": "unknown_title"}
):
    """The texts of telemetry reports: templates by regime, status or cause, and lines of evidence by measure."""

    headline: Mapping[str, Template]
    because: Mapping[str, Template]
    causes: Mapping[str, CauseAdvice]
    lines: Mapping[str, EvidenceLine]
    phase: Mapping[str, Template]
    unknown_titles: Mapping[str, str]
    """Labels of the unexplained time by its largest part (bottlenecks/recoverable.py)."""

    unknown: Mapping[str, Template]
    """Sentences that say what each part of the unexplained time is."""

    outside: Mapping[str, str]
    """What the time outside of the timed parts of a step is, by where the training runs."""

    cross_check: Mapping[str, Template]
    """Sentences about the trace and the telemetry of one process."""

    trust: Mapping[str, Template]
    """Reasons to trust either the trace or the telemetry of one process."""


@cache
def telemetry_advice() -> TelemetryAdvice:
    """Returns the texts for telemetry: those of knowledge/telemetry.toml, and the table `telemetry` of each bottleneck.
    Raises Unsourced if a cause has no source.

    A cause has the title, summary, code and action of the same cause of traces unless it has texts of its own. It does
    not take the evidence, because the rule of telemetry names its measures.
    """
    raw = load("telemetry.toml")
    headlines, evidence, causes = dict(raw["headline"]), dict(raw["evidence"]), {}
    for name in names():
        own, of_trace = _texts(name).get("telemetry", {}), _texts(name).get("cause", {})
        headlines |= {name: own["headline"]} if "headline" in own else {}
        evidence |= own.get("evidence", {})
        for cause, texts in own.get("cause", {}).items():
            shared = {key: of_trace[cause][key] for key in _SHARED if key in of_trace.get(cause, {})}
            causes[cause] = {**shared, **texts}
    lines = {name: {"measure": name, **line} for name, line in evidence.items()}
    whole = {**raw, "headline": headlines, "evidence": lines, "cause": causes}
    return typed("telemetry.toml", TelemetryAdvice, whole)


_SHARED = ("title", "summary", "code", "action")


@cache
def cause_titles() -> Mapping[str, str]:
    """Returns a dict: cause -> its title, for every cause that a report can contain."""
    advice = [telemetry_advice().causes, *(regime_advice(regime.value).causes for regime in Regime)]
    titles = {name: cause.title for causes in advice for name, cause in causes.items()}
    return memory_titles() | titles
