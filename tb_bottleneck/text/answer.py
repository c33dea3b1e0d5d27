"""The answer of a report in the order in which a reader needs it: what to do first, its gain, the cause with its fix,
and the next causes. Briefs and summaries show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tb_bottleneck.base.units import bytes_text, share_text
from tb_bottleneck.bottlenecks.plan import WORTH_DOING
from tb_bottleneck.report.digest import plan_leads
from tb_bottleneck.report.figure_text import gain_range_text, ranges_text
from tb_bottleneck.report.memory_alert import leading_alert
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import gain_text


@dataclass(frozen=True)
class AnswerCause:
    """A finding about time or memory, or a culprit of a job. `cost` and `gain` are texts.
    `is_measured` is True if a trial measured the gain."""

    title: str
    cause: str
    cost: str
    gain: str
    fix: pb.Fix
    evidence: Sequence[pb.Evidence] = ()
    where: Sequence[pb.Place] = ()
    is_measured: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer of a report with a verdict, as texts, which may contain names from the recording.

    `lead` is the cause that `action` is about; None if there is nothing to do. `others` are the other causes, in the
    order of the report.
    """

    action: str
    gain: str
    severity: str
    sentence: str
    lead: AnswerCause | None
    others: Sequence[AnswerCause]


def answer_of(report: pb.Report | pb.Job) -> Answer:
    """Returns the answer of a report with a verdict, or of the report of a job."""
    return _of_job(report) if isinstance(report, pb.Job) else _of_report(report)


def _of_report(report: pb.Report) -> Answer:
    verdict, alert = report.verdict, leading_alert(report.verdict)
    planned = [step.cause for step in report.plan]
    about_time = [
        AnswerCause(
            finding.title,
            finding.cause,
            f"{share_text(finding.cost_share)} of the time",
            gain_text(finding.speedup),
            finding.fix,
            finding.evidence,
            finding.where,
            finding.speedup.basis == "trial",
        )
        for at, finding in enumerate(report.findings)
        if at == 0 or finding.cause in planned or _gains(finding.speedup, planned)
    ]
    if plan_leads(report):
        totals = {step.cause: gain_range_text(step.speedup_total, step.low, step.high)[0] for step in report.plan[1:]}
        about_time = [
            replace(each, gain=f"; {totals[each.cause]} as fast together with the changes before it")
            if each.cause in totals
            else each
            for each in about_time
        ]
        about_time[1:] = sorted(about_time[1:], key=lambda each: [*planned, each.cause].index(each.cause))
    about_memory = [
        memory_cause(finding) for finding in report.memory.findings if finding.cause == verdict.memory_alert.cause
    ]
    if alert is not None:
        lead = about_memory[0] if about_memory else None
        return Answer(alert.action or alert.title, "", alert.severity, alert.headline, lead, about_time)
    action, gain = _first_change(report)
    sentence = verdict.headline.partition(" Most of it is in ")[0]  # a line of its own names the place
    causes = about_time + about_memory
    lead = causes.pop(0) if causes and (action or verdict.severity != "none") else None
    if lead is not None and not action:  # the change is known, but not its gain
        action, gain = lead.fix.action, lead.gain.removeprefix("; ")
    return Answer(action or _no_action(verdict), gain, verdict.severity, sentence, lead, causes)


def memory_cause(finding: pb.MemoryFinding) -> AnswerCause:
    """Returns a finding about memory. Its cost is a number of bytes, if it is known."""
    cost = f"{bytes_text(finding.bytes)} of the memory" if finding.bytes else "about the memory"
    return AnswerCause(finding.title, finding.cause, cost, "", finding.fix, finding.evidence)


def _gains(speedup: pb.Speedup, planned: Sequence[str]) -> bool:
    """Returns False if a simulation shows that the fix gains nothing worth doing, alone or after the `planned` ones."""
    return speedup.basis != "replay" or (not planned and speedup.expected >= 1 + WORTH_DOING)


def _first_change(report: pb.Report) -> tuple[str, str]:
    """Returns the first change and its gain, as `verdict.action` states them; two empty texts if there is none."""
    if not report.verdict.action:
        return "", ""
    if plan_leads(report):
        first = report.plan[0]
        gain = pb.Speedup(expected=first.speedup_total, low=first.low, high=first.high, basis="replay")
        return first.title, gain_text(gain).removeprefix("; ")
    return report.findings[0].fix.action, gain_text(report.findings[0].speedup).removeprefix("; ")


def _of_job(job: pb.Job) -> Answer:
    causes = [
        AnswerCause(
            f"{culprit.title}, {ranges_text(culprit.ranks)}" if culprit.ranks else culprit.title,
            culprit.cause,
            f"{share_text(culprit.cost_share)} of the step",
            gain_text(culprit.speedup),
            culprit.fix,
            culprit.evidence,
        )
        for culprit in job.culprits
    ]
    action = (job.culprits[0].fix.action or job.culprits[0].title) if job.culprits else job.verdict.action
    gain = causes[0].gain.removeprefix("; ") if causes else ""
    lead, others = (causes[0], causes[1:]) if causes else (None, [])
    return Answer(action or _no_action(job.verdict), gain, job.verdict.severity, job.verdict.headline, lead, others)


def _no_action(verdict: pb.Verdict) -> str:
    if verdict.severity == "none":
        return "nothing, no known change would save a tenth of the time"
    return "not known, the gain of no change could be predicted"
