"""Texts of comparisons and facts about environments, from comparison_texts.toml."""

from collections.abc import Mapping
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.knowledge.catalogue import load


@cache
def fact_titles() -> Mapping[str, str]:
    """Returns a dict from the keys of environment facts to their titles, in the order in which they are shown."""
    titles: dict[str, str] = _texts()["fact"]
    return titles


@cache
def shortfall_text(cause: str) -> Template | None:
    """Returns the template of the evidence for `cause`, a cause of the shortfall: the difference between the measured
    and the expected time of run B. Returns None if the cause has no text of its own."""
    text = _texts()["shortfall"].get(cause)
    return None if text is None else Template(text)


@cache
def headline_text(part: str) -> Template:
    """Returns the template of the part `part` of a headline."""
    return Template(_texts()["headline"][part])


@cache
def ignored_facts() -> frozenset[str]:
    """Returns the keys of facts that are never compared: facts about one machine or process, what the
    monitor measured, or redundant facts."""
    return frozenset(_texts()["ignored"]["facts"])


@cache
def sweep_titles() -> Mapping[str, str]:
    """Returns a dict from facts to the titles of the settings that users sweep. Preferred facts come first."""
    titles: dict[str, str] = _texts()["sweep"]
    return titles


@cache
def dependent_facts(swept: str) -> frozenset[str]:
    """Returns the keys of the facts that may differ only because the setting with the title `swept` differs."""
    texts = _texts()
    return frozenset(
        fact for key, title in texts["sweep"].items() if title == swept for fact in texts["dependent"].get(key, ())
    )


@cache
def observed_facts() -> frozenset[str]:
    """Returns the keys of the facts that are observed in a run and were not set by the user."""
    return frozenset(_texts()["observed"]["facts"])


@cache
def series_text(part: str) -> Template:
    """Returns the template of the sentence `part` about a series of runs."""
    return Template(_texts()["series"][part])


@cache
def what_if_text(part: str) -> Template:
    """Returns the template of the sentence `part` about a prediction."""
    return Template(_texts()["what_if"][part])


@cache
def first_cuda(capability: str) -> int | None:
    """Returns the first CUDA version that supports `capability`, such as 12080 for CUDA 12.8; None if not listed."""
    return next((entry["of"][capability] for entry in _texts()["first_cuda"] if capability in entry["of"]), None)


@cache
def _texts() -> Mapping[str, Any]:
    return load("comparison_texts.toml")
