"""Texts of parts of a report: efficiency, headroom, jobs, and the words for CPUs and Windows.

The words for runs on the CPU are in cpu_words.toml, advised code for Windows in windows_code.toml, texts and devices
for what a run without a problem could still gain in headroom.toml, the figures of efficiency in efficiency.toml, and
texts about jobs of several ranks in jobs.toml.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Template
from typing import NamedTuple

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Unsourced, load


@cache
def cpu_words() -> Mapping[str, str]:
    """Returns the parts of texts that are replaced in reports of runs on the CPU."""
    words: dict[str, str] = load("cpu_words.toml")["words"]
    return words


def words_for(device_kind: str) -> Callable[[str], str]:
    """Returns the function that puts a text of ours in the words for a kind of device: "cpu", or any other."""
    return on_cpu if device_kind == "cpu" else str


@cache
def on_cpu(text: str) -> str:
    """Returns a text of ours as it is said of a run on the CPU."""
    for part, instead in cpu_words().items():
        text = text.replace(part, instead)
    return text


_STARTS_WORKERS = "num_workers="


def guarded(lines: Sequence[str]) -> list[str]:
    """Returns lines of code under a guard for the main process, from the first one on that starts workers.

    On Windows, worker processes are started by importing the program.
    """
    first = next((at for at, line in enumerate(lines) if _STARTS_WORKERS in line), None)
    if first is None:
        return list(lines)
    guard: str = load("windows_code.toml")["worker_guard"]["line"]
    return [*lines[:first], guard, *(f"    {line}" for line in lines[first:])]


def headroom_text(kind: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Returns the title and the summary."""
    entry = load("headroom.toml")[kind]
    return Template(entry["title"]).safe_substitute(values), Template(entry["summary"]).safe_substitute(values)


def headroom_label(name: str) -> str:
    """Returns the label of a line of evidence."""
    return str(load("headroom.toml")["evidence"][name])


def larger_device_names() -> tuple[str, ...]:
    """Returns the devices that are offered as faster ones, by their names in gpus.toml, in order."""
    return tuple(load("headroom.toml")["larger_devices"])


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
    return job_figure_texts()[key]


def job_figure_texts() -> Mapping[str, str]:
    """Returns all of these sentences by key."""
    texts: Mapping[str, str] = load("efficiency.toml")["job"]
    return texts


_FILE = "jobs.toml"


class FactLine(NamedTuple):
    """The label and the unit of a fact of a cause."""

    label: str
    unit: str


@dataclass(frozen=True)
class JobCause:
    """The texts of a cause, and the regime that its time belongs to."""

    title: str
    action: Template
    headline: Template
    summary: str
    code: str
    confirm: str
    regime: str


@dataclass(frozen=True)
class JobTexts:
    """Texts by name."""

    causes: Mapping[str, JobCause]
    evidence: Mapping[str, FactLine]
    health: Mapping[str, Template]
    health_fix: Mapping[str, str]
    why: Mapping[str, str]
    words: Mapping[str, Template]


@cache
def job_texts() -> JobTexts:
    """Returns the texts. Raises Unsourced if a cause has no source."""
    raw = load(_FILE)
    for name, entry in raw["cause"].items():
        if not str(entry.get("source", "")).strip():
            raise Unsourced(f"{_FILE}: {name} has no source")
    return JobTexts(
        causes={
            name: JobCause(
                entry["title"],
                Template(entry["action"]),
                Template(entry["headline"]),
                entry["summary"],
                entry["code"].strip(),
                entry["confirm"],
                entry["regime"],
            )
            for name, entry in raw["cause"].items()
        },
        evidence={name: FactLine(entry["label"], entry["unit"]) for name, entry in raw["evidence"].items()},
        health={name: Template(text) for name, text in raw["health"].items()},
        health_fix=raw["health_fix"],
        why=raw["why"],
        words={name: Template(text) for name, text in raw["words"].items()},
    )
