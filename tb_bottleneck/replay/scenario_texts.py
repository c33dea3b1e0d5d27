"""Texts of scenarios, from knowledge/scenarios.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import load


@dataclass(frozen=True)
class Assumption:
    """`title` is a fix in a few words, `text` says what must be true for the fix to have the predicted effect.

    `needs` says what a recording lacks if the fix cannot be simulated; empty if the fix can always be simulated.
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
    """Returns the template of a sentence about the replay, by its key in the table `words`."""
    return Template(load("scenarios.toml")["words"][key])
