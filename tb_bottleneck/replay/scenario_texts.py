"""Texts of scenarios, from knowledge/scenarios.toml."""

from collections.abc import Mapping
from functools import cache
from string import Template

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import load, typed


class Assumption(Record, frozen=True, rename={"text": "assumes"}):
    """The texts of one scenario.

    `title` names the fix in a few words. `text` says what must be true for the fix to have the predicted effect.
    `needs` says what a recording lacks if the fix cannot be simulated; it is empty if the fix can always be simulated.
    """

    name: str
    title: str
    text: str
    needs: str = ""


@cache
def assumptions() -> Mapping[str, Assumption]:
    """Returns the texts of all scenarios, by the name of the scenario."""
    found = typed("scenarios.toml", tuple[Assumption, ...], load("scenarios.toml")["scenario"])
    return {texts.name: texts for texts in found}


@cache
def unsimulated() -> Mapping[str, str]:
    """Returns for each cause without a scenario the reason why its gain is not simulated, as a complete sentence."""
    return dict(load("scenarios.toml")["unsimulated"])


@cache
def word(key: str) -> Template:
    """Returns the template of a sentence about the replay. `key` is a key of the table `words` in scenarios.toml.

    Raises KeyError for any other key.
    """
    return Template(load("scenarios.toml")["words"][key])
