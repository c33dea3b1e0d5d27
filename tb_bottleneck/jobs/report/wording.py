"""The texts of a job that follow from its ids and numbers. A saved report does not contain them; they are added again
when the report is read.

A saved report is in a shared directory and is untrusted. Therefore, all advice and code that users may read or copy
comes from tables of tb_bottleneck.
"""

import re
import shlex
from collections.abc import Mapping
from string import Template

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import ranks_text, share_text
from tb_bottleneck.jobs.causes.pipelines import MAX_STAGES
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.knowledge.advice_texts import guide_of, regime_advice
from tb_bottleneck.knowledge.texts import job_figure_texts as efficiency_texts
from tb_bottleneck.knowledge.texts import job_text, job_texts
from tb_bottleneck.replay.scenario_texts import word
from tb_bottleneck.report.builders.action import with_gain
from tb_bottleneck.report.efficiency.of_job import add_job_texts
from tb_bottleneck.report.jobs import straggler_sentence
from tb_bottleneck.schema import bottleneck_pb2 as pb

OPERATIONS = frozenset(operation.name.lower() for operation in Operation)
MAX_NAME = 200  # characters of a name from a recording

_FIGURES = {
    "share": r"[0-9.]{1,8} %",
    "count": "[0-9]{1,7}",
    "world": "[0-9]{1,7}",
    "ranks": "(?:[0-9]{1,7} )?ranks? [0-9, andto().-]{1,120}",
    "like": "(?:[0-9]{1,7} like [0-9]{1,7}(?:, )?){1,8}(?:[0-9]{1,7} more)?",
}
_TEXTS = {
    "factor": re.compile(r"[0-9]{1,6}\.[0-9]{2}x"),
    "layers": re.compile(f"[0-9]{{1,7}}(?:, [0-9]{{1,7}}){{1,{MAX_STAGES - 1}}}"),
    "ranks": re.compile(_FIGURES["ranks"]),
    "text": re.compile("|".join(OPERATIONS)),
}


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
    """Returns a copy of `job` without the texts that with_texts adds again. Names of process groups and sentences with
    figures about the health of the analysis are kept."""
    names = {line.label: name for name, line in job_texts().evidence.items()}
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
        for fact in culprit.evidence:
            fact.label = names[fact.label]
    for reason in plain.health.reasons:
        reason.fix = ""
    keys = {text: key for key, text in efficiency_texts().items()}
    for note in plain.efficiency.notes if plain.HasField("efficiency") else ():
        note.CopyFrom(pb.EfficiencyNote(field=note.field, basis=keys.get(note.basis), because=keys.get(note.because)))
    return plain


def with_texts(plain: pb.Job) -> None:
    """Adds titles, advice, code and headlines to `plain`, a job from without_texts, in place.

    Raises:
        ValueError, KeyError: the job contains values that tb_bottleneck does not write.
    """
    texts = job_texts()
    for row in plain.account:
        row.title, row.meaning = Regime(row.regime).label, regime_advice(row.regime).meaning
    for gain in _gains(plain):
        _explain(gain)
    for culprit in plain.culprits:
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
        for fact in culprit.evidence:
            _label(fact)
    for reason in plain.health.reasons:
        code = reason.code.removeprefix("job_")
        reason.fix = texts.health_fix[code]
        _expect(re.fullmatch(_pattern(texts.health[code]), reason.detail) is not None)
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


def _label(fact: pb.Evidence) -> None:
    """Replaces `fact.label`, the name of a number, by the label that users see. Raises KeyError or ValueError if `fact`
    has values that tb_bottleneck does not write."""
    name, line = fact.label, job_texts().evidence[fact.label]
    if fact.HasField("value"):
        _expect(fact.unit == line.unit and line.unit not in _TEXTS and not fact.text)
    elif name == "group":
        fact.text = printable(fact.text)
    else:
        _expect(line.unit in _TEXTS and _TEXTS[line.unit].fullmatch(fact.text) is not None)
    fact.label = line.label
    _expect(not fact.compared_with)


def _pattern(template: Template) -> str:
    """Returns a regular expression that matches all sentences that `template` can produce."""
    why = "|".join(map(re.escape, job_texts().why.values()))
    return re.sub(r"\\\$(\w+)", lambda match: _FIGURES.get(match[1], f"(?:{why})"), re.escape(template.template))


def _expect(condition: bool) -> None:
    if not condition:
        raise ValueError("not a job as tb_bottleneck writes it")
