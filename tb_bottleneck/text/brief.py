"""A report in at most 1,500 characters of plain text, for agents, chats and messages of commits.

The lines and their order are the same for every report. Names that a recording contains are quoted and shortened.
"""

from collections.abc import Iterator

from tb_bottleneck.base.units import one_line, quoted, share_text
from tb_bottleneck.report.figure_text import lines_text, place_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.answer import Answer, answer_of

MAX_BRIEF = 1500
"""Characters of a brief: about 375 tokens."""

_NAME, _PLACE, _ACTION, _SENTENCE, _CONFIRM, _NEXT = 100, 120, 160, 190, 200, 150
"""Largest numbers of characters of single lines. The code of the fix may use the remaining characters of the brief; the
longest code of a known cause has 490."""

_CODE_ENDS = len("    ...\n")
_MAX_NEXT, _MIN_PLACE_SHARE = 2, 0.05


def brief(report: pb.Report | pb.Job) -> str:
    """Returns a report, or the report of a job, in at most MAX_BRIEF characters of plain text.

    The lines are, in this order and only if they are known: the recording, what to do first, the gain with its
    interval, severity and confidence, the cause with its share of the time, the line of the program, the fix as code,
    what would confirm the cause, the command that measures the fix, and the next two findings. Without a verdict, the
    text says what to record instead.
    """
    if isinstance(report, pb.Report) and not report.HasField("verdict"):
        return _fitted(list(_unjudged_lines(report)), [reason.fix for reason in report.health.reasons if reason.fix])
    answer = answer_of(report)
    before = [
        _name(report),
        f"Do first: {one_line(answer.action, _ACTION)}",
        *([f"Gain: {one_line(answer.gain, _NEXT)}"] if answer.gain else []),
        f"Severity: {answer.severity}; confidence: {report.verdict.confidence}",
        *_cause_lines(answer, "" if isinstance(report, pb.Job) else report.job_headline),
    ]
    lead = answer.lead
    after = [f"To confirm: {one_line(lead.fix.confirm, _CONFIRM)}"] if lead is not None and lead.fix.confirm else []
    if lead is not None and lead.fix.command:
        after.append(f"To measure it: {lead.fix.command}")
    for cause in answer.others[:_MAX_NEXT]:
        after.append(one_line(f"Next: {cause.title} [{cause.cause}], {cause.cost}{cause.gain}", _NEXT))
    return _fitted(before, [lead.fix.code] if lead is not None else [], after)


def _name(report: pb.Report | pb.Job) -> str:
    if isinstance(report, pb.Job):
        job = f"Job: {quoted(report.run, _NAME)}" if report.run not in ("", ".") else "Job"
        return f"{job}, {len(report.ranks)} of {report.world_size} ranks"
    name = report.source if report.run in ("", ".") else f"{report.run}/{report.source}"
    return f"Recording: {quoted(name, _NAME)}"


def _cause_lines(answer: Answer, of_all_ranks: str) -> Iterator[str]:
    lead = answer.lead
    if lead is not None:
        yield one_line(f"Cause: {lead.title} [{lead.cause}], {lead.cost}", _NEXT)
    if answer.sentence:
        yield one_line(f"Verdict: {answer.sentence}", _SENTENCE)
    if of_all_ranks:
        yield f"All ranks: {one_line(of_all_ranks, _SENTENCE)}"
    place = lead.where[0] if lead is not None and lead.where else None
    if place is not None and place.share >= _MIN_PLACE_SHARE:
        yield f"Line: {quoted(place_text(place), _PLACE)}, {share_text(place.share)} of this cost{lines_text(place)}"


def _unjudged_lines(report: pb.Report) -> Iterator[str]:
    yield _name(report)
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
