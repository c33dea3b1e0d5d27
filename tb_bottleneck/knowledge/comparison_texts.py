"""The words of comparisons, from comparison.toml."""

from collections.abc import Mapping
from functools import cache
from string import Template
from typing import Any

from tb_bottleneck.knowledge.catalogue import load


@cache
def fact_titles() -> Mapping[str, str]:
    """What facts of a run's surroundings are called, in the order in which they are shown."""
    titles: dict[str, str] = _words()["fact"]
    return titles


@cache
def shortfall_text(cause: str) -> Template | None:
    """The evidence of what B's time and the promise differ by, to be filled in; None for a cause without words here."""
    text = _words()["remainder"].get(cause)
    return None if text is None else Template(text)


@cache
def headline_text(part: str) -> Template:
    """A part of a headline, to be filled in."""
    return Template(_words()["headline"][part])


@cache
def ignored_facts() -> frozenset[str]:
    """Facts of a context that are never compared: about one machine or process, or said better by others."""
    return frozenset(_words()["left_out"]["facts"])


@cache
def sweep_titles() -> Mapping[str, str]:
    """What people sweep, by the fact that tells it, the best to say first."""
    titles: dict[str, str] = _words()["sweep"]
    return titles


@cache
def dependent_facts(swept: str) -> frozenset[str]:
    """Facts that differ because the thing with this title does."""
    words = _words()
    return frozenset(
        fact for key, title in words["sweep"].items() if title == swept for fact in words["follows"].get(key, ())
    )


@cache
def observed_facts() -> frozenset[str]:
    """Facts that a run shows rather than is given."""
    return frozenset(_words()["shown"]["facts"])


@cache
def series_text(part: str) -> Template:
    """A sentence about several runs, to be filled in."""
    return Template(_words()["series"][part])


@cache
def what_if_text(part: str) -> Template:
    """A sentence about a run that was not made, to be filled in."""
    return Template(_words()["what_if"][part])


@cache
def first_cuda(capability: str) -> int | None:
    """The first CUDA that knows a compute capability, as 12080 for 12.8; None where it is not written down."""
    return next((entry["of"][capability] for entry in _words()["first_cuda"] if capability in entry["of"]), None)


@cache
def _words() -> Mapping[str, Any]:
    return load("comparison.toml")
