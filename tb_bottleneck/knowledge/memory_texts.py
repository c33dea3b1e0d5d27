"""Texts of the memory account and memory sizes of devices, from memory.toml."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import Unsourced, load


@dataclass(frozen=True)
class MemoryAdvice:
    """The texts of a finding about memory. `action` and `headline` are empty if it is not worth a warning."""

    title: str
    summary: str
    code: str
    confirm: str
    action: str
    headline: Template


def part_label(kind: str) -> str:
    """Returns the label of a part of the account."""
    return str(load("memory.toml")["part"][kind])


def evidence_label(name: str) -> str:
    """Returns the label of a line of evidence."""
    return str(load("memory.toml")["evidence"][name])


def sentence(table: str, name: str, values: Mapping[str, str] | None = None) -> str:
    """Returns a text of one of the tables missing, urgency, forecast and assumes, with its values."""
    return Template(load("memory.toml")[table][name]).safe_substitute(values or {})


def memory_titles() -> dict[str, str]:
    """Returns the title of every finding."""
    return {cause: entry["title"] for cause, entry in load("memory.toml")["finding"].items()}


@cache
def memory_advice(cause: str) -> MemoryAdvice:
    """Returns the texts of a finding. Raises Unsourced if it has no source."""
    entry = load("memory.toml")["finding"][cause]
    if not str(entry.get("source", "")).strip():
        raise Unsourced(f"memory.toml: {cause} has no source")
    return MemoryAdvice(
        entry["title"],
        entry["summary"],
        entry["code"].strip(),
        entry["confirm"],
        entry.get("action", ""),
        Template(entry.get("headline", "")),
    )


def code_in_fp32(cause: str, evidence: Iterable[str]) -> str:
    """Returns a further line of code for a finding whose evidence shows that products or parameters are in fp32."""
    entry = load("memory.toml")["in_fp32"]
    shown = cause in entry["causes"] and not set(evidence).isdisjoint(entry["evidence"])
    return "\n" + str(entry["code"]).strip() if shown else ""


# Devices report a little less than their name states: 0.986 of an A100 40 GB, 0.990 of an H100 80 GB.
_REPORTED_SHARE = 0.985
_IN_NAME = re.compile(r"\b(\d{1,3}) ?GB\b")


def device_memory(name: str) -> int | None:
    """Returns the bytes of memory of a device, by its name in gpus.toml; None if they are not known."""
    stated = _IN_NAME.search(name)
    if stated is not None:
        return round(int(stated[1]) * _REPORTED_SHARE * (1 << 30))
    entry = next((entry for entry in load("memory.toml")["device"] if entry["name"] == name), None)
    return None if entry is None else round(entry["gib"] * (1 << 30))
