"""Texts of the memory account, from memory.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import Unsourced, load


@dataclass(frozen=True)
class MemoryAdvice:
    """The texts of a finding about memory."""

    title: str
    summary: str
    code: str
    confirm: str


def part_label(kind: str) -> str:
    """Returns the label of a part of the account."""
    return str(load("memory.toml")["part"][kind])


def evidence_label(name: str) -> str:
    """Returns the label of a line of evidence."""
    return str(load("memory.toml")["evidence"][name])


def sentence(table: str, name: str, values: Mapping[str, str] | None = None) -> str:
    """Returns a text of one of the tables missing, forecast and assumes, with its values."""
    return Template(load("memory.toml")[table][name]).safe_substitute(values or {})


@cache
def memory_advice(cause: str) -> MemoryAdvice:
    """Returns the texts of a finding. Raises Unsourced if it has no source."""
    entry = load("memory.toml")["finding"][cause]
    if not str(entry.get("source", "")).strip():
        raise Unsourced(f"memory.toml: {cause} has no source")
    return MemoryAdvice(entry["title"], entry["summary"], entry["code"].strip(), entry["confirm"])
