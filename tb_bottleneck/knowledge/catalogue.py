"""Loads the facts in the TOML files of this folder, and refuses entries without a source."""

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
    """An entry of the knowledge base has no source."""


@dataclass(frozen=True)
class NamePattern:
    """A pattern for names, the label of the names that match, and a real name that must match."""

    label: str
    pattern: re.Pattern[str]
    example: str


@cache
def load(name: str) -> Mapping[str, Any]:
    """Returns the content of the TOML file `name` of this folder. Raises Unsourced."""
    data = tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))
    refuse_unsourced(name, data)
    return data


def all_texts() -> list[Mapping[str, Any]]:
    """Returns the content of all files of this folder."""
    return [load(path.relative_to(_FOLDER).as_posix()) for path in sorted(_FOLDER.rglob("*.toml"))]


def refuse_unsourced(name: str, data: Mapping[str, Any]) -> None:
    """Raises Unsourced if a list entry has no `source`."""
    for key, entries in data.items():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and not str(entry.get("source", "")).strip():
                raise Unsourced(f"{name}: an entry of {key} has no source: {entry}")


@cache
def kernel_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for the kind of work of kernels, in order of precedence."""
    return _patterns("kernels.toml", "kernel", "work", "")


@cache
def fusible_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for kernels that a compiler merges with their neighbours, in order of precedence."""
    return _patterns("kernels.toml", "fusible", "fuses", "")


@cache
def call_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for the role of runtime and driver calls, in order of precedence."""
    return _patterns("calls.toml", "call", "role", r"^(?:cuda|cu|hip)")


def first_match(patterns: tuple[NamePattern, ...], name: str) -> str | None:
    """Returns the label of the first pattern that matches `name`, or None."""
    return next((entry.label for entry in patterns if entry.pattern.search(name)), None)


def _patterns(file: str, table: str, label_key: str, prefix: str) -> tuple[NamePattern, ...]:
    return tuple(
        NamePattern(
            label=entry[label_key],
            pattern=re.compile(prefix + entry["pattern"], re.IGNORECASE if entry.get("ignore_case") else 0),
            example=entry["example"],
        )
        for entry in load(file)[table]
    )


@cache
def activity_patterns(on: str, trains: bool = True) -> tuple[NamePattern, ...]:
    """Returns the patterns for the activity of host rows; `on` is annotation, python, operator or overhead.

    If `trains` is False, patterns for interruptions of a training are left out: without training they are the work.
    """
    entries = load("host_activities.toml")["activity"]
    entries = [entry for entry in entries if entry["on"] == on and (trains or not entry.get("amid_training"))]
    return tuple(NamePattern(entry["does"], re.compile(entry["pattern"]), entry["example"]) for entry in entries)


@cache
def frame_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for details of Python frames, beyond the activity of their thread."""
    return _patterns("frames.toml", "frame", "does", "")


@cache
def installed_packages() -> frozenset[str]:
    """Returns how the paths of well-known installed packages begin: `pandas/`, or `six.py`."""
    entries = load("frames.toml")["packages"]
    folders = (f"{name}/" for entry in entries for name in entry.get("folders", ()))
    return frozenset((*folders, *(f"{name}.py" for entry in entries for name in entry.get("files", ()))))


@cache
def operator_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for the kind of work of operators, in order of precedence."""
    return _patterns("operators.toml", "operator", "work", "")


@cache
def host_operator_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for what an operator does to tensors in host memory: "describes" or "computes"."""
    return _patterns("operators.toml", "host_operator", "does", "")


@cache
def precision_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for units and types of contraction kernels, "UNIT [DTYPE]", in order of precedence."""
    return _patterns("precisions.toml", "precision", "runs", "")
