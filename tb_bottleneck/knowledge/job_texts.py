"""Texts about jobs of several ranks, from knowledge/jobs.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template
from typing import NamedTuple

from tb_bottleneck.knowledge.catalogue import Unsourced, load

_FILE = "jobs.toml"


class FactLine(NamedTuple):
    """The label and the unit of a fact of a cause."""

    label: str
    unit: str


@dataclass(frozen=True)
class JobCause:
    """The texts of a cause, and the regime that its time belongs to."""

    title: str
    action: Template
    headline: Template
    summary: str
    code: str
    confirm: str
    regime: str


@dataclass(frozen=True)
class JobTexts:
    """Texts by name."""

    causes: Mapping[str, JobCause]
    evidence: Mapping[str, FactLine]
    health: Mapping[str, Template]
    health_fix: Mapping[str, str]
    why: Mapping[str, str]
    words: Mapping[str, Template]


@cache
def job_texts() -> JobTexts:
    """Returns the texts. Raises Unsourced if a cause has no source."""
    raw = load(_FILE)
    for name, entry in raw["cause"].items():
        if not str(entry.get("source", "")).strip():
            raise Unsourced(f"{_FILE}: {name} has no source")
    return JobTexts(
        causes={
            name: JobCause(
                entry["title"],
                Template(entry["action"]),
                Template(entry["headline"]),
                entry["summary"],
                entry["code"].strip(),
                entry["confirm"],
                entry["regime"],
            )
            for name, entry in raw["cause"].items()
        },
        evidence={name: FactLine(entry["label"], entry["unit"]) for name, entry in raw["evidence"].items()},
        health={name: Template(text) for name, text in raw["health"].items()},
        health_fix=raw["health_fix"],
        why=raw["why"],
        words={name: Template(text) for name, text in raw["words"].items()},
    )
