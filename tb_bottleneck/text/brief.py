"""A report in at most 1,500 characters of plain text, for agents, chats and messages of commits.

The lines and their order are the same for every report. Names that a recording contains are quoted and shortened.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tb_bottleneck.base.units import one_line, quoted, share_text
from tb_bottleneck.report.digest import plan_leads
from tb_bottleneck.report.figure_text import lines_text, place_text
from tb_bottleneck.report.memory_alert import leading_alert
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.job import ranges_text
from tb_bottleneck.text.report import gain_text

MAX_BRIEF = 1500
"""Characters of a brief: about 375 tokens."""

_NAME, _PLACE, _ACTION, _SENTENCE, _CONFIRM, _NEXT = 100, 120, 160, 190, 200, 150
"""Largest numbers of characters of single lines. The code of the fix may use the remaining characters of the brief; the
longest code of a known cause has 490."""

_CODE_ENDS = len("    ...\n")
_MAX_NEXT, _MIN_PLACE_SHARE = 2, 0.05
_NO_ACTION = "nothing, no known change would save a tenth of the time"
_UNKNOWN = "not known, the gain of no change could be predicted"


@dataclass(frozen=True)
class _Cause:
    """A finding about time or memory, or a culprit of a job, as a brief shows it."""

    title: str
    cause: str
    cost: str
    gain: str
    fix: pb.Fix
    where: tuple[pb.Place, ...] = ()


@dataclass(frozen=True)
class _Brief:
    name: str
    action: str
    verdict: pb.Verdict
    severity: str
    sentence: str
    gain: str = ""
    note: str = ""
    lead: _Cause | None = None  # what the action is about
    others: list[_Cause] = field(default_factory=list)  # in the order of the report


def brief(report: pb.Report | pb.Job) -> str:
    """Returns a report, or the report of a job, in at most MAX_BRIEF characters of plain text.

    The lines are, in this order and only if they are known: the recording, what to do first, the gain with its
    interval, severity and confidence, the cause with its share of the time, the line of the program, the fix as code,
    what would confirm the cause, the command that measures the fix, and the next two findings. Without a verdict, the
    text says what to record instead.
    """
    if isinstance(report, pb.Report) and not report.HasField("verdict"):
        return _fitted(list(_unjudged_lines(report)), [reason.fix for reason in report.health.reasons if reason.fix])
    content = _of_job(report) if isinstance(report, pb.Job) else _of_report(report)
    before = [
        content.name,
        f"Do first: {one_line(content.action, _ACTION)}",
        *([f"Gain: {one_line(content.gain, _NEXT)}"] if content.gain else []),
        f"Severity: {content.severity}; confidence: {content.verdict.confidence}",
        *_cause_lines(content),
    ]
    lead = content.lead
    after = [f"To confirm: {one_line(lead.fix.confirm, _CONFIRM)}"] if lead is not None and lead.fix.confirm else []
    if lead is not None and lead.fix.trial:
        after.append(f"To measure it: tb-bottleneck try {lead.fix.trial} -- python train.py")
    for cause in content.others[:_MAX_NEXT]:
        after.append(one_line(f"Next: {cause.title} [{cause.cause}], {cause.cost}{cause.gain}", _NEXT))
    return _fitted(before, [lead.fix.code] if lead is not None else [], after)


def _of_report(report: pb.Report) -> _Brief:
    verdict, alert = report.verdict, leading_alert(report.verdict)
    about_time = [
        _Cause(
            finding.title,
            finding.cause,
            f"{share_text(finding.cost_share)} of the time",
            gain_text(finding.speedup),
            finding.fix,
            tuple(finding.where),
        )
        for finding in report.findings
    ]
    about_memory = [
        _Cause(finding.title, finding.cause, "about the memory", "", finding.fix)
        for finding in report.memory.findings
        if finding.cause == verdict.memory_alert.cause
    ]
    note = one_line(report.job_headline, _SENTENCE)
    name = report.source if report.run in ("", ".") else f"{report.run}/{report.source}"
    shown = f"Recording: {quoted(name, _NAME)}"
    if alert is not None:
        action = alert.action or alert.title
        lead = about_memory[0] if about_memory else None
        return _Brief(shown, action, verdict, alert.severity, alert.headline, "", note, lead, about_time)
    action, gain = _first_change(report)
    sentence = verdict.headline.partition(" Most of it is in ")[0]  # a line of its own names the place
    causes = about_time + about_memory
    lead = causes.pop(0) if causes and (action or verdict.severity != "none") else None
    if lead is not None and not action:  # the change is known, but not its gain
        action, gain = lead.fix.action, lead.gain.removeprefix("; ")
    action = action or _no_action(verdict)
    return _Brief(shown, action, verdict, verdict.severity, sentence, gain, note, lead, causes)


def _first_change(report: pb.Report) -> tuple[str, str]:
    """Returns the first change and its gain, as `verdict.action` states them; two empty texts if there is none."""
    if not report.verdict.action:
        return "", ""
    if plan_leads(report):
        first = report.plan[0]
        gain = pb.Speedup(expected=first.speedup_total, low=first.low, high=first.high, basis="replay")
        return first.title, gain_text(gain).removeprefix("; ")
    return report.findings[0].fix.action, gain_text(report.findings[0].speedup).removeprefix("; ")


def _of_job(job: pb.Job) -> _Brief:
    causes = [
        _Cause(
            f"{culprit.title}, {ranges_text(culprit.ranks)}" if culprit.ranks else culprit.title,
            culprit.cause,
            f"{share_text(culprit.cost_share)} of the step",
            gain_text(culprit.speedup),
            culprit.fix,
        )
        for culprit in job.culprits
    ]
    run = f"Job: {quoted(job.run, _NAME)}" if job.run not in ("", ".") else "Job"
    name = f"{run}, {len(job.ranks)} of {job.world_size} ranks"
    action = (job.culprits[0].fix.action or job.culprits[0].title) if job.culprits else job.verdict.action
    gain = causes[0].gain.removeprefix("; ") if causes else ""
    verdict = job.verdict
    lead, others = (causes[0], causes[1:]) if causes else (None, [])
    action = action or _no_action(verdict)
    return _Brief(name, action, verdict, verdict.severity, verdict.headline, gain, "", lead, others)


def _no_action(verdict: pb.Verdict) -> str:
    return _NO_ACTION if verdict.severity == "none" else _UNKNOWN


def _cause_lines(content: _Brief) -> Iterator[str]:
    lead = content.lead
    if lead is not None:
        yield one_line(f"Cause: {lead.title} [{lead.cause}], {lead.cost}", _NEXT)
    if content.sentence:
        yield one_line(f"Verdict: {content.sentence}", _SENTENCE)
    if content.note:
        yield f"All ranks: {content.note}"
    place = lead.where[0] if lead is not None and lead.where else None
    if place is not None and place.share >= _MIN_PLACE_SHARE:
        yield f"Line: {quoted(place_text(place), _PLACE)}, {share_text(place.share)} of this cost{lines_text(place)}"


def _unjudged_lines(report: pb.Report) -> Iterator[str]:
    name = report.source if report.run in ("", ".") else f"{report.run}/{report.source}"
    yield f"Recording: {quoted(name, _NAME)}"
    if report.memory.findings:
        yield one_line(f"Memory: {report.memory.findings[0].headline or report.memory.findings[0].title}", _SENTENCE)
    yield f"No verdict: the recording is {one_line(report.health.status or 'without times', _NEXT)}"
    for reason in report.health.reasons[: _MAX_NEXT + 1]:
        yield one_line(f"Because: {reason.detail} [{reason.code}]", _SENTENCE)


def _fitted(before: list[str], codes: list[str], after: list[str] | None = None) -> str:
    """Returns `before`, as many lines of `codes` as fit, and `after` as text. First removes lines of `after`, from the
    last one on, if the text is too long without code."""
    after = after or []
    while sum(len(line) + 1 for line in (*before, *after)) > MAX_BRIEF - 2 * _CODE_ENDS and after:
        after.pop()
    room = MAX_BRIEF - sum(len(line) + 1 for line in (*before, *after)) - len("Fix:\n")
    lines = [f"    {one_line(line)}" for code in codes for line in code.strip("\n").splitlines()]
    kept: list[str] = []
    for line in lines:
        if len(line) + 1 > room - _CODE_ENDS:
            kept.append("    ...")
            break
        kept.append(line)
        room -= len(line) + 1
    return "\n".join([*before, *(["Fix:", *kept] if kept else []), *after]) + "\n"
