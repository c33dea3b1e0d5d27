"""Texts of findings from traces and telemetry, from the TOML files in advice/.

There is one file per regime, one for the health of recordings, and one for telemetry.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import Unsourced, load
from tb_bottleneck.knowledge.memory_texts import memory_titles


class EvidenceLine(Record, frozen=True):
    """A line of evidence: the `measure`, its `label`, and `compared_with`, a text about the reference for the measure.

    An optional line is left out if its measure is missing. `compared_with_context` replaces `compared_with` if the
    training process recorded the measure as a fact; it is empty if the reference stays the same."""

    measure: str
    label: str
    compared_with: str
    optional: bool
    compared_with_context: str = ""


class CauseAdvice(Record, frozen=True):
    """The texts of a finding about one cause: title, summary, advised code, how to confirm it, evidence and
    headline."""

    title: str
    summary: str
    code: Template  # may use the figures of the evidence, as $measure
    confirm: str
    evidence: tuple[EvidenceLine, ...]
    headline: Template | None  # replaces the headline of the regime; may use the evidence, as $measure
    action: str = ""  # the change in a few words; empty for the title of the scenario, or if there is no change


class RegimeAdvice(Record, frozen=True):
    """The texts of a regime. All texts except `meaning` are templates, in which values such as $share are filled in."""

    meaning: str
    headline: Template
    because: Mapping[str, Template]
    causes: Mapping[str, CauseAdvice]


class HealthAdvice(Record, frozen=True):
    """The texts of a defect of a recording; `detail` is a template.

    `fix_if` has the fixes for kinds of the defect that need another fix. Kinds without a fix have a sentence in
    `none_if`. `cuda` has the first and the last version of CUDA with the defect; empty if CUDA does not matter."""

    detail: Template
    fix: str
    fix_if: Mapping[str, str]
    none_if: Mapping[str, str]
    cuda: tuple[str, ...] = ()

    @property
    def fixes(self) -> tuple[str, ...]:
        """All fixes of the defect: `fix`, those in `fix_if`, and an empty text for each kind in `none_if`."""
        return (self.fix, *self.fix_if.values(), *("" for _ in self.none_if))


@cache
def regime_advice(regime: str) -> RegimeAdvice:
    """Returns the texts of `regime` and its causes. Raises Unsourced if a cause has no source."""
    raw = load(f"advice/{regime}.toml")
    return RegimeAdvice(
        meaning=raw["meaning"],
        headline=Template(raw["headline"]),
        because={status: Template(text) for status, text in raw["because"].items()},
        causes={name: _cause(regime, name, entry) for name, entry in raw.get("cause", {}).items()},
    )


@cache
def health_advice(code: str) -> HealthAdvice:
    """Returns the texts of the defect `code`. Raises Unsourced if the defect has no source."""
    entry = load("advice/health.toml")[code]
    _refuse_unsourced("health", code, entry)
    return HealthAdvice(
        Template(entry["detail"]),
        entry["fix"],
        entry.get("fix_if", {}),
        entry.get("none_if", {}),
        tuple(entry.get("cuda", ())),
    )


def _cause(regime: str, name: str, raw: Mapping[str, Any]) -> CauseAdvice:
    _refuse_unsourced(regime, name, raw)
    return CauseAdvice(
        title=raw["title"],
        summary=raw["summary"],
        code=Template(raw["code"].strip()),
        confirm=raw["confirm"],
        evidence=tuple(
            EvidenceLine(
                e["measure"],
                e["label"],
                e.get("compared_with", ""),
                e.get("optional", False),
                e.get("compared_with_context", ""),
            )
            for e in raw.get("evidence", ())
        ),
        headline=Template(raw["headline"]) if "headline" in raw else None,
        action=raw.get("action", ""),
    )


def _refuse_unsourced(file: str, name: str, raw: Mapping[str, Any]) -> None:
    if not str(raw.get("source", "")).strip():
        raise Unsourced(f"advice/{file}.toml: {name} has no source")


@cache
def _guides() -> Mapping[str, str]:
    return {cause: guide["url"] for guide in load("guides.toml")["guide"] for cause in guide["causes"]}


def guide_of(cause: str) -> str:
    """Returns the URL of the official documentation of the fix of `cause`, from guides.toml; empty if there is none."""
    return _guides().get(cause, "")


EDIT = "--rev BRANCH"
_NUMBERS = {"workers": r"num_workers=(\d{1,4})\b", "threads": r"set_num_threads\((\d{1,4})\)|THREADS=(\d{1,4})\b"}


def trial_of(cause: str, code: str) -> str:
    """Returns the change of `tb-bottleneck try` that measures the fix of `cause`; empty if `try` cannot measure it.

    If no setting makes the fix, the change is an edit of the code, which is tried as a branch.

    `code` is the code of the fix. The number of workers or threads in `code` is tried; if `code` has none, a few usual
    numbers are tried. If `code` uses float16, the result is empty: a trial of bfloat16 would measure another fix, and
    float16 needs a scaler in the training loop, which no setting adds.
    """
    trials = load("trials.toml")
    if cause in trials["edit"]["causes"]:
        return f"{EDIT} --cause {cause}"  # with --cause, the ledger contains the gain that the finding predicted
    change = str(trials["change"].get(cause, ""))
    if "bf16" in change.split() and "torch.float16" in code:
        return ""
    values = {}
    for name, pattern in _NUMBERS.items():
        found = re.search(pattern, code)
        values[name] = next(filter(None, found.groups())) if found else "1,2,4"
    return Template(change).safe_substitute(values)


_FILE = "advice/telemetry.toml"


@dataclass(frozen=True)
class TelemetryAdvice:
    """The texts of telemetry reports: templates by regime, status or cause, and lines of evidence by measure."""

    headline: Mapping[str, Template]
    because: Mapping[str, Template]
    causes: Mapping[str, CauseAdvice]
    lines: Mapping[str, EvidenceLine]
    phase: Mapping[str, Template]
    unknown_titles: Mapping[str, str]
    """Labels of the unexplained time by its largest part (measures/telemetry/recoverable.py)."""

    unknown: Mapping[str, Template]
    """Sentences that say what each part of the unexplained time is."""

    cross_check: Mapping[str, Template]
    """Sentences about the trace and the telemetry of one process."""

    trust: Mapping[str, Template]
    """Reasons to trust either the trace or the telemetry of one process."""


@cache
def telemetry_advice() -> TelemetryAdvice:
    """Returns the texts for telemetry. Raises Unsourced if a cause has no source.

    If telemetry shows the same as a trace, the texts are those of the regime. Otherwise, telemetry has its own texts.
    """
    raw = load(_FILE)
    return TelemetryAdvice(
        headline={regime: Template(text) for regime, text in raw["headline"].items()},
        because={status: Template(text) for status, text in raw["because"].items()},
        causes={name: _telemetry_text_cause(name, entry) for name, entry in raw["cause"].items()},
        phase={name: Template(text) for name, text in raw["phase"].items()},
        unknown_titles=raw["unknown_title"],
        unknown={name: Template(text) for name, text in raw["unknown"].items()},
        cross_check={name: Template(text) for name, text in raw["cross_check"].items()},
        trust={name: Template(text) for name, text in raw["trust"].items()},
        lines={name: _line(name, entry) for name, entry in raw["evidence"].items()},
    )


@cache
def cause_titles() -> Mapping[str, str]:
    """Returns a dict: cause -> its title, for every cause that a report can contain."""
    advice = [telemetry_advice().causes, *(regime_advice(regime.value).causes for regime in Regime)]
    titles = {name: cause.title for causes in advice for name, cause in causes.items()}
    return memory_titles() | titles


def _line(name: str, raw: Mapping[str, Any]) -> EvidenceLine:
    return EvidenceLine(name, raw["label"], raw.get("compared_with", ""), optional=bool(raw.get("optional", False)))


def _telemetry_text_cause(name: str, raw: Mapping[str, Any]) -> CauseAdvice:
    if not str(raw.get("source", "")).strip():
        raise Unsourced(f"{_FILE}: {name} has no source")
    shared = regime_advice(raw["regime"]).causes[name] if "regime" in raw else None
    return CauseAdvice(
        title=raw["title"] if shared is None else raw.get("title", shared.title),
        summary=raw["summary"] if shared is None else raw.get("summary", shared.summary),
        code=Template(raw["code"].strip()) if "code" in raw or shared is None else shared.code,
        confirm=raw["confirm"],
        evidence=(),  # the rule names its measures, in its order
        headline=Template(raw["headline"]) if "headline" in raw else None,
        action=raw.get("action", shared.action if shared is not None else ""),
    )
