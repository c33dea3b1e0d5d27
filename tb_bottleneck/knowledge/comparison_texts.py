"""Texts of comparisons and facts about environments, from comparison_texts.toml."""

from collections.abc import Mapping
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.knowledge.catalogue import load


@cache
def fact_titles() -> Mapping[str, str]:
    """Returns the titles of environment facts, in the order in which they are shown."""
    titles: dict[str, str] = _texts()["fact"]
    return titles


@cache
def shortfall_text(cause: str) -> Template | None:
    """Returns the evidence for a part of the shortfall, to be filled in; None for a cause without its own text."""
    text = _texts()["shortfall"].get(cause)
    return None if text is None else Template(text)


@cache
def headline_text(part: str) -> Template:
    """Returns a part of a headline, to be filled in."""
    return Template(_texts()["headline"][part])


@cache
def ignored_facts() -> frozenset[str]:
    """Returns the facts of a context that are never compared: about one machine or process, or covered by others."""
    return frozenset(_texts()["ignored"]["facts"])


@cache
def sweep_titles() -> Mapping[str, str]:
    """Returns the titles of settings that users sweep, by the fact that shows them, the preferred fact first."""
    titles: dict[str, str] = _texts()["sweep"]
    return titles


@cache
def dependent_facts(swept: str) -> frozenset[str]:
    """Returns the facts that differ because the setting with this title does."""
    texts = _texts()
    return frozenset(
        fact for key, title in texts["sweep"].items() if title == swept for fact in texts["dependent"].get(key, ())
    )


@cache
def observed_facts() -> frozenset[str]:
    """Returns the facts that are observed in a run instead of set."""
    return frozenset(_texts()["observed"]["facts"])


@cache
def series_text(part: str) -> Template:
    """Returns a sentence about a series of runs, to be filled in."""
    return Template(_texts()["series"][part])


@cache
def what_if_text(part: str) -> Template:
    """Returns a sentence about a prediction, to be filled in."""
    return Template(_texts()["what_if"][part])


@cache
def first_cuda(capability: str) -> int | None:
    """Returns the first CUDA version with support for a compute capability, as 12080 for 12.8; None if not listed."""
    return next((entry["of"][capability] for entry in _texts()["first_cuda"] if capability in entry["of"]), None)


@cache
def _texts() -> Mapping[str, Any]:
    return load("comparison_texts.toml")
