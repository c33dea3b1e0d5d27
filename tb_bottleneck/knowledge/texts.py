"""Texts of parts of a report: efficiency, headroom (possible gains), jobs, and the words for CPUs and Windows.

cpu_words.toml has the words for runs on the CPU, windows_code.toml the advised code for Windows, headroom.toml the
texts about possible gains of a run without a problem, efficiency.toml those about figures of efficiency, and jobs.toml
the texts about jobs of several ranks.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from string import Template

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Source, load, typed


@cache
def cpu_words() -> Mapping[str, str]:
    """Returns a dict from parts of texts to the parts that replace them in reports of runs on the CPU."""
    words: dict[str, str] = load("cpu_words.toml")["words"]
    return words


def words_for(device_kind: str) -> Callable[[str], str]:
    """Returns a function that adapts a text to a kind of device. Only "cpu" changes the text."""
    return on_cpu if device_kind == "cpu" else str


@cache
def on_cpu(text: str) -> str:
    """Returns `text` with words that fit runs on the CPU. `text` must be a text of this package."""
    for part, instead in cpu_words().items():
        text = text.replace(part, instead)
    return text


_STARTS_WORKERS = "num_workers="


def guarded(lines: Sequence[str]) -> list[str]:
    """Returns `lines` of code, with a guard for the main process inserted before the first line that starts workers.

    This line and all lines after it are indented below the guard. On Windows, worker processes import the program when
    they start. Without a line that starts workers, `lines` are not changed.
    """
    first = next((at for at, line in enumerate(lines) if _STARTS_WORKERS in line), None)
    if first is None:
        return list(lines)
    guard: str = load("windows_code.toml")["worker_guard"]["line"]
    return [*lines[:first], guard, *(f"    {line}" for line in lines[first:])]


def headroom_text(kind: str) -> tuple[str, str]:
    """Returns the title and the summary of the possible gain `kind`."""
    entry = load("headroom.toml")[kind]
    return entry["title"], entry["summary"]


def headroom_label(name: str) -> str:
    """Returns the label of the line of evidence `name`."""
    return str(load("headroom.toml")["evidence"][name])


class FigureText(Record, frozen=True):
    """The texts of a figure of efficiency. `field` is the name of the figure in the message Efficiency."""

    field: str
    title: str
    unit: str
    definition: str


@cache
def figure_texts() -> tuple[FigureText, ...]:
    """Returns the texts of all figures of efficiency, in the order in which they are shown."""
    return typed("efficiency.toml", tuple[FigureText, ...], load("efficiency.toml")["figure"])


def basis_text(key: str, values: Mapping[str, str]) -> str:
    """Returns the sentence `key` about the source of a figure, with `values` filled in."""
    return Template(load("efficiency.toml")["basis"][key]).safe_substitute(values)


def because_text(key: str, values: Mapping[str, str]) -> str:
    """Returns the sentence `key` that says why a figure is not known, with `values` filled in."""
    return Template(load("efficiency.toml")["because"][key]).safe_substitute(values)


def job_definition(field: str) -> str:
    """Returns the definition of the figure `field` for a whole job. Raises KeyError if jobs do not have this figure."""
    return str(load("efficiency.toml")["job_definition"][field])


def job_text(key: str) -> str:
    """Returns the sentence `key` that gives the source of a figure of a job, or says why the figure is not known."""
    return job_figure_texts()[key]


def job_figure_texts() -> Mapping[str, str]:
    """Returns a dict from keys to the sentences that `job_text` returns."""
    texts: Mapping[str, str] = load("efficiency.toml")["job"]
    return texts


class FactLine(Record, frozen=True):
    """The label and the unit of a fact in the evidence for a cause of a job."""

    label: str
    unit: str


class JobCause(Record, frozen=True):
    """The texts of a cause of a job, and the regime to which the time of the cause belongs."""

    title: str
    action: Template
    headline: Template
    summary: str
    code: str
    confirm: str
    regime: str
    source: Source


class JobTexts(Record, frozen=True, rename={"causes": "cause"}):
    """The texts about jobs. Each field maps names to texts."""

    causes: Mapping[str, JobCause]
    evidence: Mapping[str, FactLine]
    health: Mapping[str, Template]
    health_fix: Mapping[str, str]
    why: Mapping[str, str]
    words: Mapping[str, Template]


@cache
def job_texts() -> JobTexts:
    """Returns the texts about jobs. Raises Unsourced if a cause has no source."""
    return typed("jobs.toml", JobTexts)
