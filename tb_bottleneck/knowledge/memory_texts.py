"""Texts about memory, and memory sizes of devices, from memory.toml."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from string import Template

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Source, load, typed


class MemoryAdvice(Record, frozen=True):
    """The texts of a finding about memory. `action` and `headline` are empty if the finding is not worth a warning."""

    title: str
    summary: str
    code: str
    confirm: str
    source: Source
    action: str = ""
    headline: Template = Template("")


def part_label(kind: str) -> str:
    """Returns the label of `kind`, a category of memory (memory/categories.py)."""
    return str(load("memory.toml")["part"][kind])


def evidence_label(name: str) -> str:
    """Returns the label of the line of evidence `name`."""
    return str(load("memory.toml")["evidence"][name])


def sentence(table: str, name: str, values: Mapping[str, str] | None = None) -> str:
    """Returns the text `name` in the table `table` of memory.toml, such as "forecast", with `values` filled in."""
    return Template(load("memory.toml")[table][name]).safe_substitute(values or {})


def memory_titles() -> dict[str, str]:
    """Returns a dict: cause of a finding about memory -> its title."""
    return {cause: entry["title"] for cause, entry in load("memory.toml")["finding"].items()}


@cache
def memory_advice(cause: str) -> MemoryAdvice:
    """Returns the texts of the finding `cause`. Raises Unsourced if the finding has no source."""
    return typed("memory.toml", MemoryAdvice, load("memory.toml")["finding"][cause])


def code_in_fp32(cause: str, evidence: Iterable[str]) -> str:
    """Returns an additional line of code if `evidence` of the finding `cause` shows that matrix multiplications or
    parameters are in fp32; otherwise an empty text. The line begins with a line break."""
    entry = load("memory.toml")["in_fp32"]
    shown = cause in entry["causes"] and not set(evidence).isdisjoint(entry["evidence"])
    return "\n" + str(entry["code"]).strip() if shown else ""


# Devices report a little less than their name states: 0.986 of an A100 40 GB, 0.990 of an H100 80 GB.
_REPORTED_SHARE = 0.985
_IN_NAME = re.compile(r"\b(\d{1,3}) ?GB\b")


def device_memory(name: str) -> int | None:
    """Returns the memory size in bytes of the device `name`, from the size that the name states ("80 GB"), otherwise
    from memory.toml; None if the size is not known."""
    stated = _IN_NAME.search(name)
    if stated is not None:
        return round(int(stated[1]) * _REPORTED_SHARE * (1 << 30))
    entry = next((entry for entry in load("memory.toml")["device"] if entry["name"] == name), None)
    return None if entry is None else round(entry["gib"] * (1 << 30))
