"""The efficiency of a job, from the reports of its ranks (not from summaries of ranks).

If ranks only average gradients, exchange data between experts or shard parameters, each rank has its own samples, which
are summed. Ranks of a tensor, pipeline or context group work on the same samples. A trace does not show which ranks
share samples, so no sum is stated for jobs with such groups.
"""

from collections.abc import Collection, Sequence
from statistics import fmean

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.knowledge.texts import figure_texts, job_definition, job_text
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.report.efficiency.figures import SAMPLES, TOKENS, set_notes
from tb_bottleneck.schema import bottleneck_pb2 as pb

OWN_SAMPLES = frozenset({"data", "expert", "sharded"})
"""Kinds of process groups whose ranks work on different samples."""


def job_efficiency(reports: Sequence[pb.Report], world_size: int, kinds: Collection[str]) -> pb.Efficiency | None:
    """Returns the figures of all ranks together; None if no rank has any. `reports` are those of the ranks,
    `world_size` is the number of ranks in the job.

    `kinds` are the kinds of the job's process groups, empty if they are not known."""
    parts = [report.efficiency for report in reports]
    steps = [report.window.step_ns.mean / NS_PER_S for report in reports if report.window.basis != "whole"]
    if len(steps) < len(reports) or min(steps, default=0.0) <= 0 or not any(part.notes for part in parts):
        return None
    complete, seconds = len(reports) == world_size, fmean(steps)
    obstacle = _obstacle(complete, kinds)
    samples, tokens = (_sum(parts, field, obstacle) for field in (SAMPLES, TOKENS))
    joules = _sum(parts, "joules_per_step", "" if complete else "ranks_missing")
    figures: Figures = {
        "mfu": _utilisation(parts, steps, "mfu", complete),
        "hfu": _utilisation(parts, steps, "hfu", complete),
        "samples_per_second": _divided(samples, seconds),
        "tokens_per_second": _divided(tokens, seconds),
        "goodput": _mean(parts, "goodput", complete),
        "joules_per_step": joules,
    }
    message = pb.Efficiency()
    for field, figure in ((SAMPLES, samples), (TOKENS, tokens), *figures.items()):
        if figure.value is not None:
            setattr(message, field, figure.value)
    notes = {field: pb.EfficiencyNote(field=field) for field in figures}
    for field, figure in figures.items():
        setattr(notes[field], "because" if figure.value is None else "basis", job_text(figure.text))
    set_notes(message, notes)
    add_job_texts(message)
    return message


def add_job_texts(message: pb.Efficiency) -> None:
    """Sets title, unit and definition of each note in `message`. Raises KeyError for a figure that jobs do not have."""
    texts = {text.field: text for text in figure_texts()}
    for note in message.notes:
        note.title, note.unit = texts[note.field].title, texts[note.field].unit
        note.definition = job_definition(note.field)


def _obstacle(complete: bool, kinds: Collection[str]) -> str:
    """Returns the key of the reason why samples of the ranks cannot be summed; empty if they can be summed.

    `complete` is True if all ranks were recorded; `kinds` are the kinds of the job's process groups."""
    if not complete:
        return "ranks_missing"
    if not kinds or "unknown" in kinds:
        return "groups_unknown"
    return "" if set(kinds) <= OWN_SAMPLES else "shared_samples"


def _values(parts: Sequence[pb.Efficiency], field: str) -> list[float] | None:
    """Returns the figure `field` of each rank, or None if one of the ranks does not have it."""
    return [getattr(part, field) for part in parts] if all(part.HasField(field) for part in parts) else None


def _sum(parts: Sequence[pb.Efficiency], field: str, obstacle: str) -> Figure:
    values = _values(parts, field)
    if values is None or obstacle:
        return unknown("some_ranks" if values is None else obstacle)
    return known(sum(values), "all_ranks")


def _mean(parts: Sequence[pb.Efficiency], field: str, complete: bool) -> Figure:
    values = _values(parts, field)
    return unknown("some_ranks") if values is None else known(fmean(values), _of_ranks(complete))


def _utilisation(parts: Sequence[pb.Efficiency], steps: Sequence[float], field: str, complete: bool) -> Figure:
    """Returns the utilisation `field` of all ranks: their operations / (step time x sum of their peaks). `steps` are
    the step times in seconds; `complete` is True if all ranks were recorded."""
    shares, peaks = _values(parts, field), _values(parts, "peak_flops")
    if shares is None or peaks is None:
        return unknown("some_ranks")
    done = sum(share * peak * step for share, peak, step in zip(shares, peaks, steps, strict=True))
    return known(done / (fmean(steps) * sum(peaks)), _of_ranks(complete)) if sum(peaks) > 0 else unknown("some_ranks")


def _of_ranks(complete: bool) -> str:
    return "all_ranks" if complete else "recorded_ranks"


def _divided(figure: Figure, divisor: float) -> Figure:
    return figure if figure.value is None else known(figure.value / divisor, figure.text)
