"""The texts of scenarios, from knowledge/scenarios.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import load


@dataclass(frozen=True)
class Assumption:
    """What a cure does, in a few words, and what has to be true for it to bring what is predicted.

    `needs` is what a recording lacks where the cure cannot be simulated; empty where it always can.
    """

    title: str
    text: str
    needs: str


@cache
def assumptions() -> Mapping[str, Assumption]:
    """By the name of the scenario."""
    return {
        entry["name"]: Assumption(entry["title"], entry["assumes"], entry.get("needs", ""))
        for entry in load("scenarios.toml")["scenario"]
    }


@cache
def unsimulated() -> Mapping[str, str]:
    """Why no replay tells the gain, by cause; whole sentences."""
    return dict(load("scenarios.toml")["unsimulated"])


@cache
def word(key: str) -> Template:
    """What a report says of its replay."""
    return Template(load("scenarios.toml")["words"][key])
