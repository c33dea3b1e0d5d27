"""Loads the facts in this folder's TOML files, and refuses an entry without a source."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent


class Unsourced(ValueError):
    """An entry of the knowledge base that does not say where it comes from."""


@dataclass(frozen=True)
class NamePattern:
    """An entry that recognises names: what it says of them, and a real name that it must recognise."""

    says: str
    pattern: re.Pattern[str]
    example: str


@cache
def load(name: str) -> Mapping[str, Any]:
    """The TOML file `name` of this folder, as it stands, after each entry was seen to have a source."""
    data = tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))
    refuse_unsourced(name, data)
    return data


def refuse_unsourced(name: str, data: Mapping[str, Any]) -> None:
    """Raises Unsourced where a list entry lacks `source`."""
    for key, entries in data.items():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and not str(entry.get("source", "")).strip():
                raise Unsourced(f"{name}: an entry of {key} has no source: {entry}")


@cache
def kernel_patterns() -> tuple[NamePattern, ...]:
    """The kinds of work that kernel names tell, in order of precedence."""
    return _patterns("kernels.toml", "kernel", "work", "")


@cache
def call_patterns() -> tuple[NamePattern, ...]:
    """The roles of runtime and driver calls, in order of precedence."""
    return _patterns("calls.toml", "call", "role", r"^(?:cuda|cu|hip)")


def first_match(patterns: tuple[NamePattern, ...], name: str) -> str | None:
    """What the first entry that recognises `name` says, None where none does."""
    return next((entry.says for entry in patterns if entry.pattern.search(name)), None)


def _patterns(file: str, table: str, says: str, prefix: str) -> tuple[NamePattern, ...]:
    return tuple(
        NamePattern(
            says=entry[says],
            pattern=re.compile(prefix + entry["pattern"], re.IGNORECASE if entry.get("ignore_case") else 0),
            example=entry["example"],
        )
        for entry in load(file)[table]
    )


@cache
def activity_patterns(on: str, trains: bool = True) -> tuple[NamePattern, ...]:
    """What host rows tell of a thread's activity; `on` is annotation, python, operator or overhead.

    Where nothing `trains`, what only interrupts a training is left out: there it is the work itself.
    """
    told = load("host_activities.toml")["activity"]
    entries = [entry for entry in told if entry["on"] == on and (trains or not entry.get("amid_training"))]
    return tuple(NamePattern(entry["does"], re.compile(entry["pattern"]), entry["example"]) for entry in entries)


@cache
def frame_patterns() -> tuple[NamePattern, ...]:
    """What Python frames do beyond their thread's activity."""
    return _patterns("frames.toml", "frame", "does", "")


@cache
def operator_patterns() -> tuple[NamePattern, ...]:
    """The kinds of work that operators do on the CPU."""
    return _patterns("operators.toml", "operator", "work", "")


@cache
def precision_patterns() -> tuple[NamePattern, ...]:
    """The units and types of contraction kernels, as "UNIT [DTYPE]", in order of precedence."""
    return _patterns("precisions.toml", "precision", "runs", "")
