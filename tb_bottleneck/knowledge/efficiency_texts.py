"""Texts of the figures of efficiency, from efficiency.toml."""

from collections.abc import Mapping
from functools import cache
from string import Template

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.record import Record


class FigureText(Record, frozen=True):
    """The texts of a figure; `field` is its name in the message Efficiency."""

    field: str
    title: str
    unit: str
    definition: str


@cache
def figure_texts() -> tuple[FigureText, ...]:
    """Returns the figures in the order in which they are shown."""
    return tuple(
        FigureText(raw["field"], raw["title"], raw["unit"], raw["definition"])
        for raw in load("efficiency.toml")["figure"]
    )


def basis_text(key: str, values: Mapping[str, str]) -> str:
    """Returns the sentence about where a value comes from."""
    return Template(load("efficiency.toml")["basis"][key]).safe_substitute(values)


def because_text(key: str, values: Mapping[str, str]) -> str:
    """Returns the sentence about why a value is not known."""
    return Template(load("efficiency.toml")["because"][key]).safe_substitute(values)


def job_definition(field: str) -> str:
    """Returns the definition of a figure of a whole job. Raises KeyError if jobs do not have it."""
    return str(load("efficiency.toml")["job_definition"][field])


def job_text(key: str) -> str:
    """Returns the sentence about where a figure of a job comes from, or why it is not known."""
    return job_texts()[key]


def job_texts() -> Mapping[str, str]:
    """Returns all of these sentences by key."""
    texts: Mapping[str, str] = load("efficiency.toml")["job"]
    return texts
