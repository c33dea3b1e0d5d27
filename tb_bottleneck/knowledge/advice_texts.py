"""Texts of findings from traces and telemetry, from the TOML files in advice/.

There is one file per regime, one for the health of recordings, and one for telemetry.
"""

import re
from collections.abc import Mapping
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import Regime
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
    headline."""

    title: str
    summary: str
    code: Template  # may use the figures of the evidence, as $measure
    confirm: str
    source: Source
    evidence: tuple[EvidenceLine, ...] = ()
    headline: Template | None = None  # replaces the headline of the regime; may use the evidence, as $measure
    action: str = ""  # the change in a few words; empty for the title of the scenario, or if there is no change


class RegimeAdvice(Record, frozen=True, rename={"causes": "cause"}):
    """The texts of a regime. All texts except `meaning` are templates, in which values such as $share are filled in."""

    meaning: str
    headline: Template
    because: Mapping[str, Template]
    causes: Mapping[str, CauseAdvice] = {}


class HealthAdvice(Record, frozen=True):
    """The texts of a defect of a recording; `detail` is a template.

    `fix_if` has the fixes for kinds of the defect that need another fix. Kinds without a fix have a sentence in
    `none_if`. `cuda` has the first and the last version of CUDA with the defect; empty if CUDA does not matter."""

    detail: Template
    fix: str
    source: Source
    fix_if: Mapping[str, str] = {}
    none_if: Mapping[str, str] = {}
    cuda: tuple[str, ...] = ()

    @property
    def fixes(self) -> tuple[str, ...]:
        """All fixes of the defect: `fix`, those in `fix_if`, and an empty text for each kind in `none_if`."""
        return (self.fix, *self.fix_if.values(), *("" for _ in self.none_if))


@cache
def regime_advice(regime: str) -> RegimeAdvice:
    """Returns the texts of `regime` and its causes. Raises Unsourced if a cause has no source."""
    return typed(f"advice/{regime}.toml", RegimeAdvice)


@cache
def health_advice(code: str) -> HealthAdvice:
    """Returns the texts of the defect `code`. Raises Unsourced if the defect has no source."""
    return typed("advice/health.toml", dict[str, HealthAdvice])[code]


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
    lines = {name: {"measure": name, **line} for name, line in raw["evidence"].items()}
    causes = {name: {**_texts_of_regime(name, cause), **cause} for name, cause in raw["cause"].items()}
    return typed(_FILE, TelemetryAdvice, {**raw, "evidence": lines, "cause": causes})


def _texts_of_regime(name: str, cause: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the texts that the cause `name` of telemetry takes from the same cause of its regime. The evidence is not
    among them, because the rule of telemetry names its measures."""
    of_trace = load(f"advice/{cause['regime']}.toml")["cause"][name] if "regime" in cause else {}
    return {key: of_trace[key] for key in ("title", "summary", "code", "action") if key in of_trace}


@cache
def cause_titles() -> Mapping[str, str]:
    """Returns a dict: cause -> its title, for every cause that a report can contain."""
    advice = [telemetry_advice().causes, *(regime_advice(regime.value).causes for regime in Regime)]
    titles = {name: cause.title for causes in advice for name, cause in causes.items()}
    return memory_titles() | titles
