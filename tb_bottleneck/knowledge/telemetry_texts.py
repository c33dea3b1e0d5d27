"""Texts of reports about telemetry: own ones, or those of the regime if telemetry shows the same as a trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.knowledge.advice_texts import CauseAdvice, EvidenceLine, regime_advice
from tb_bottleneck.knowledge.catalogue import Unsourced, load
from tb_bottleneck.knowledge.memory_texts import memory_titles
from tb_bottleneck.regime import Regime

_FILE = "advice/telemetry.toml"


@dataclass(frozen=True)
class TelemetryAdvice:
    """Templates by regime, status and cause; labels by measure."""

    headline: Mapping[str, Template]
    because: Mapping[str, Template]
    causes: Mapping[str, CauseAdvice]
    lines: Mapping[str, EvidenceLine]
    phase: Mapping[str, Template]
    unknown_titles: Mapping[str, str]
    """Labels of the unexplained time by its largest part (measures/telemetry/recoverable.py)."""

    unknown: Mapping[str, Template]
    """What each part of the unexplained time is."""

    cross_check: Mapping[str, Template]
    """Sentences about the trace and the telemetry of one process."""

    trust: Mapping[str, Template]
    """Reasons to trust one of the two."""


@cache
def telemetry_advice() -> TelemetryAdvice:
    """Returns the texts. Raises Unsourced if a cause has no source."""
    raw = load(_FILE)
    return TelemetryAdvice(
        headline={regime: Template(text) for regime, text in raw["headline"].items()},
        because={status: Template(text) for status, text in raw["because"].items()},
        causes={name: _cause(name, entry) for name, entry in raw["cause"].items()},
        phase={name: Template(text) for name, text in raw["phase"].items()},
        unknown_titles=raw["unknown_title"],
        unknown={name: Template(text) for name, text in raw["unknown"].items()},
        cross_check={name: Template(text) for name, text in raw["cross_check"].items()},
        trust={name: Template(text) for name, text in raw["trust"].items()},
        lines={name: _line(name, entry) for name, entry in raw["evidence"].items()},
    )


@cache
def cause_titles() -> Mapping[str, str]:
    """Returns the title of every cause that a report can contain."""
    advice = [telemetry_advice().causes, *(regime_advice(regime.value).causes for regime in Regime)]
    titles = {name: cause.title for causes in advice for name, cause in causes.items()}
    return memory_titles() | titles


def _line(name: str, raw: Mapping[str, Any]) -> EvidenceLine:
    return EvidenceLine(name, raw["label"], raw.get("compared_with", ""), optional=bool(raw.get("optional", False)))


def _cause(name: str, raw: Mapping[str, Any]) -> CauseAdvice:
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
