"""Texts of scenarios, from knowledge/scenarios.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import load


@dataclass(frozen=True)
class Assumption:
    """A fix in a few words, and what must be true for it to have the predicted effect.

    `needs` is what a recording lacks if the fix cannot be simulated; empty if it always can.
    """

    title: str
    text: str
    needs: str


@cache
def assumptions() -> Mapping[str, Assumption]:
    """Returns the assumptions by the name of the scenario."""
    return {
        entry["name"]: Assumption(entry["title"], entry["assumes"], entry.get("needs", ""))
        for entry in load("scenarios.toml")["scenario"]
    }


@cache
def unsimulated() -> Mapping[str, str]:
    """Returns the reasons why a gain is not simulated, by cause; complete sentences."""
    return dict(load("scenarios.toml")["unsimulated"])


@cache
def word(key: str) -> Template:
    """Returns a sentence of the report about its replay."""
    return Template(load("scenarios.toml")["words"][key])
