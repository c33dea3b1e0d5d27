"""The texts of a job that follow from its ids and numbers. A saved report does not contain them; they are added again
when the report is read.

A saved report is in a shared directory and is untrusted. Therefore, all advice and code that users may read or copy
comes from tables of tb_bottleneck.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, TypeAlias

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import ranks_text, share_text
from tb_bottleneck.bottlenecks.texts import guide_of, regime_advice, word
from tb_bottleneck.jobs.causes.candidates import Fact
from tb_bottleneck.jobs.causes.pipelines import MAX_STAGES
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.knowledge.texts import job_figure_texts as efficiency_texts
from tb_bottleneck.knowledge.texts import job_text, job_texts
from tb_bottleneck.report.builders.action import with_gain
from tb_bottleneck.report.efficiency.of_job import add_job_texts
from tb_bottleneck.report.jobs import MAX_LISTED_RANKS, straggler_sentence
from tb_bottleneck.schema import bottleneck_pb2 as pb

OPERATIONS = frozenset(operation.name.lower() for operation in Operation)
MAX_NAME = 200  # characters of a name from a recording
LARGEST = 2.0**62
MAX_NUMBERS = max(MAX_STAGES, MAX_LISTED_RANKS)

Reason: TypeAlias = tuple[str, Mapping[str, Any]]
"""Why the analysis of a job is degraded: the id of its text, and the values in it."""

MAX_PEERS = 8
"""Largest number of unrecorded ranks that are named."""


@dataclass(frozen=True)
class JobAnalysis:
    """The analysis of a job: its context, or None if it is not trusted; why it is degraded; and the facts that show
    each culprit, in the order of the culprits."""

    context: JobContext | None
    reasons: Sequence[Reason] = ()
    evidence: Sequence[Mapping[str, Fact]] = ()


def health_message(reasons: Sequence[Reason]) -> pb.Health:
    """Returns the health of an analysis: "ok", or "degraded" with the reasons. Raises KeyError, TypeError or ValueError
    for values that tb_bottleneck does not write."""
    texts, rows = job_texts(), []
    for code, values in reasons:
        said = {name: _said(name, value) for name, value in values.items() if name != "more"}
        if values.get("more"):
            said["like"] += f", {_whole(values['more'])} more"
        detail = texts.health[code].substitute(said)
        rows.append(pb.HealthReason(code=f"job_{code}", detail=detail, fix=texts.health_fix[code]))
    return pb.Health(status="degraded" if rows else "ok", reasons=rows)


def _said(name: str, value: Any) -> str:
    """Returns the value `name` of a reason as text."""
    if name == "share":
        _expect(isinstance(value, float) and 0 <= value <= 1)
        return share_text(value)
    if name == "why":
        return job_texts().why[value]
    if name == "ranks":
        return ranks_text(_numbers(value))
    if name == "like":
        pairs = [tuple(map(_whole, pair)) for pair in value]
        return ", ".join(f"{rank} like {peer}" for rank, peer in pairs)
    return str(_whole(value))


def evidence_row(name: str, value: Fact) -> pb.Evidence:
    """Returns the fact `name` of a culprit as evidence. Raises KeyError, TypeError or ValueError for values that
    tb_bottleneck does not write."""
    line = job_texts().evidence[name]
    if line.unit == "text":
        _expect(isinstance(value, str) and (name == "group" or value in OPERATIONS))
        return pb.Evidence(label=line.label, text=printable(str(value)))
    if line.unit in ("layers", "ranks"):
        numbers = _numbers(value)
        text = ranks_text(numbers) if line.unit == "ranks" else ", ".join(map(str, numbers))
        return pb.Evidence(label=line.label, text=text)
    _expect(isinstance(value, int | float) and abs(value) <= LARGEST)
    if line.unit == "factor":
        return pb.Evidence(label=line.label, text=f"{value:.2f}x")
    return pb.Evidence(label=line.label, value=value, unit=line.unit)  # type: ignore[arg-type]


def _numbers(value: Any) -> list[int]:
    """Returns a list of 1 to MAX_NUMBERS whole numbers."""
    _expect(not isinstance(value, str) and 0 < len(value) <= MAX_NUMBERS)
    return [_whole(each) for each in value]


def _whole(value: Any) -> int:
    _expect(isinstance(value, int) and 0 <= value <= LARGEST)
    return int(value)


def action_of(culprit: pb.Culprit) -> str:
    """Returns a short instruction that says what to change to fix the culprit, without a gain."""
    return job_texts().causes[culprit.cause].action.safe_substitute(ranks=ranks_text(culprit.ranks))


def action_sentence(job: pb.Job) -> str:
    """Returns a sentence with the fix of the first culprit and its gain; empty if there is no culprit."""
    return with_gain(action_of(job.culprits[0]), job.culprits[0].speedup) if job.culprits else ""


def headline_of(job: pb.Job) -> str:
    """Returns the headline about the main cause, without texts from the report of a single rank."""
    if job.culprits:
        first = job.culprits[0]
        headline = job_texts().causes[first.cause].headline
        return headline.safe_substitute(ranks=ranks_text(first.ranks), share=share_text(first.cost_share))
    if job.stragglers:
        return straggler_sentence(job.stragglers[0].rank, job.stragglers[0].behind_share)
    return job_texts().words["balanced" if job.HasField("replay") else "alike"].substitute()


def without_texts(job: pb.Job) -> pb.Job:
    """Returns a copy of `job` without the parts that with_texts adds again. Names of process groups are kept."""
    plain = pb.Job()
    plain.CopyFrom(job)
    plain.run = ""
    for field in ("headline", "title", "situation", "action", "memory_alert"):
        plain.verdict.ClearField(field)
    for row in plain.account:
        row.title = row.meaning = ""
    for gain in _gains(plain):
        gain.assumes = gain.because = ""
    for culprit in plain.culprits:
        culprit.title = ""
        culprit.ClearField("fix")
        culprit.ClearField("evidence")
    had_health = plain.HasField("health")
    plain.ClearField("health")
    if had_health:
        plain.health.SetInParent()
    keys = {text: key for key, text in efficiency_texts().items()}
    for note in plain.efficiency.notes if plain.HasField("efficiency") else ():
        note.CopyFrom(pb.EfficiencyNote(field=note.field, basis=keys.get(note.basis), because=keys.get(note.because)))
    return plain


def with_texts(plain: pb.Job, reasons: Sequence[Reason], evidence: Sequence[Mapping[str, Fact]]) -> None:
    """Adds titles, advice, code, headlines, evidence and health to `plain`, a job from without_texts, in place.
    `reasons` and `evidence` are those of its JobAnalysis.

    Raises:
        ValueError, KeyError: the job contains values that tb_bottleneck does not write.
    """
    texts = job_texts()
    for row in plain.account:
        row.title, row.meaning = Regime(row.regime).label, regime_advice(row.regime).meaning
    for gain in _gains(plain):
        _explain(gain)
    for culprit, facts in zip(plain.culprits, evidence, strict=True):
        cause = texts.causes[culprit.cause]
        culprit.title = cause.title
        culprit.fix.CopyFrom(
            pb.Fix(
                summary=cause.summary,
                code=cause.code.strip(),
                confirm=cause.confirm,
                action=action_of(culprit),
                documentation=guide_of(culprit.cause),
            )
        )
        _expect(not culprit.evidence)
        culprit.evidence.extend(evidence_row(name, value) for name, value in facts.items())
    _expect(not plain.health.status and not plain.health.reasons)
    if plain.HasField("health"):
        plain.health.CopyFrom(health_message(reasons))
    if plain.HasField("efficiency"):
        _explain_efficiency(plain.efficiency)
    for group in plain.groups:
        group.name = printable(group.name)
        _expect(all(transfer.operation in OPERATIONS for transfer in group.transfers))
    verdict = plain.verdict
    verdict.ClearField("memory_alert")  # the reports of the ranks have it
    verdict.title = Regime(verdict.regime).label
    verdict.headline, verdict.action = headline_of(plain), action_sentence(plain)


def recording_path(run: str, source: str) -> str:
    """Returns the path of a recording relative to the logdir. `run` is the directory of the run, `source` the name of
    the file."""
    return source if run in ("", ".") else f"{run}/{source}"


def name_recordings(job: pb.Job, recordings: Mapping[int, str]) -> None:
    """Replaces the placeholders `$slow` and `$peer` in the code of the fixes by paths of recordings: the recording of
    the first affected rank of the culprit, and that of the first rank that is not affected. A path that is not known is
    replaced by SLOW_RANK or ANOTHER_RANK. `recordings` maps rank numbers to paths of recordings."""
    for culprit in job.culprits:
        slow = [recordings[rank] for rank in culprit.ranks if rank in recordings]
        peers = [recordings[rank] for rank in sorted(recordings) if rank not in culprit.ranks]
        names = {"slow": slow[:1] or ["SLOW_RANK"], "peer": peers[:1] or ["ANOTHER_RANK"]}
        quoted = {name: shlex.quote(printable(found[0])) for name, found in names.items()}
        culprit.fix.code = Template(culprit.fix.code).safe_substitute(quoted)


def _explain_efficiency(efficiency: pb.Efficiency) -> None:
    """Adds the texts of `efficiency` in place. Raises ValueError or KeyError for values that tb_bottleneck does not
    write."""
    _expect(not efficiency.types and not efficiency.samples_basis)
    for note in efficiency.notes:
        note.basis = note.basis and job_text(note.basis)
        note.because = note.because and job_text(note.because)
    add_job_texts(efficiency)


def printable(name: str) -> str:
    """Returns the first MAX_NAME characters of `name`, which comes from a recording. Characters that are not printable
    are replaced by U+FFFD."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name[:MAX_NAME])


def _gains(job: pb.Job) -> list[pb.Speedup]:
    """Returns all gains in `job`: of the job, and of each culprit."""
    own = [getattr(job, name) for name in ("speedup", "speedup_all") if job.HasField(name)]
    return own + [culprit.speedup for culprit in job.culprits]


def _explain(gain: pb.Speedup) -> None:
    """Adds the texts of `gain` in place. Raises ValueError for values that tb_bottleneck does not write."""
    words = job_texts().words
    _expect(gain.unless in ("", word("cores_become_free").substitute()))
    if gain.basis == "bound":
        gain.because = words["bound"].substitute()
    elif gain.basis == "none":
        gain.because = word("ranks_missing").substitute()
    else:
        _expect(gain.basis in ("replay", "ranks"))
        gain.assumes = (words["assumes"] if gain.basis == "replay" else word("ranks_assumed")).substitute()


def _expect(condition: bool) -> None:
    if not condition:
        raise ValueError("not a job as tb_bottleneck writes it")
