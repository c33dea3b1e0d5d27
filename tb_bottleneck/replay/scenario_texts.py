"""Texts of scenarios, from knowledge/scenarios.toml, and the noise between runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import load

# The bounds of every gain are widened by this share: the difference between two runs of one training, chosen for a
# machine that runs nothing else. On a shared machine runs differ more: the mean steps of one training's repeats in
# demo/recorded/recorded.json have a standard deviation of 7.8 % at the median (28 halves, 2026-11-21).
RUN_TO_RUN_NOISE = 0.03


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
