"""A report in at most 30 lines of a terminal: the answer, where the time goes, the line, two figures and the code."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from tb_bottleneck.base.units import bytes_text, duration_text, one_line, share_text
from tb_bottleneck.report.digest import step_ns_of
from tb_bottleneck.report.figure_text import lines_text, place_text, ranges_text, value_text
from tb_bottleneck.report.memory_alert import leading_alert
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.answer import AnswerCause, answer_of, memory_cause
from tb_bottleneck.text.document import RULE, Line, Part, Table, bar, code_lines, fix_lines, heading, wrapped
from tb_bottleneck.text.report import device_text
from tb_bottleneck.text.sections import input_text, place_of
from tb_bottleneck.text.terminal import Layout

MAX_SUMMARY = 30
"""Lines of a summary."""
_MIN_ROW, _MIN_PLACE = 0.03, 0.05
"""Smallest shares of a row of the account, and of a place in the cost of its cause."""
_MAX_ROWS, _MAX_EVIDENCE, _MAX_NEXT, _MAX_REASONS = 5, 2, 2, 3
_SENTENCE, _TITLE = 190, 100
_CORRECTED = ("profiler_overhead",)
"""Defects that the figures do not suffer from, because they are corrected."""
_SEVERITIES = {"critical": "Critical", "warning": "Worth fixing", "info": "Minor", "none": "No problem"}
_NO_VERDICT = {
    "unreadable": "This file cannot be read as a trace.",
    "snapshot": "A snapshot of the allocator: it shows the memory, and has no times.",
}
_Block: TypeAlias = tuple[int, Sequence[Part]]


def summary(report: pb.Report | pb.Job, layout: Layout | None = None, lines: int = MAX_SUMMARY) -> str:
    """Returns a report, or the report of a job, in at most `lines` lines, fitted into `layout`.

    If a report needs more lines, whole blocks are left out, the least important ones first.
    """
    blocks = [(rank, (layout or Layout()).text(parts)) for rank, parts in _blocks(report, max(lines // 4, 2))]
    blocks = [block for block in blocks if block[1].strip()]
    less_important = sorted((block for block in blocks if block[0]), key=lambda block: -block[0])
    while sum(text.count("\n") for _, text in blocks) > lines and less_important:
        blocks.remove(less_important.pop(0))
    return "".join(text for _, text in blocks)


def _blocks(report: pb.Report | pb.Job, code: int) -> Iterator[_Block]:
    """Yields blocks of the summary with their ranks; that of the fix has at most `code` lines. Blocks with the highest
    rank are left out first, those with rank 0 never."""
    yield 3, [Line(one_line(_title(report), _SENTENCE), "title"), RULE]
    if isinstance(report, pb.Report) and not report.HasField("verdict"):
        yield from _without_verdict(report, code)
        return
    answer = answer_of(report)
    # The headline of a memory problem names the action itself.
    action = "" if leading_alert(report.verdict) else one_line(report.verdict.action, _SENTENCE)
    sentence = one_line(answer.sentence, _SENTENCE)
    yield 0, [Line(action or sentence, "strong"), *wrapped(sentence if action else "")]
    if isinstance(report, pb.Report):
        yield 1, wrapped(one_line(report.job_headline, _SENTENCE))
    severity = _SEVERITIES.get(answer.severity, answer.severity)
    yield 2, [Line(f"{severity}, {report.verdict.confidence} confidence: {_subject(report)}", answer.severity)]
    yield 4, _account(report)
    if answer.lead is not None:
        yield from _cause(answer.lead, code)
    if isinstance(report, pb.Report) and report.HasField("input"):
        yield 7, ["", input_text(report.input)]
    yield 5, ["", *_next(answer.others)]
    for reason in [reason for reason in report.health.reasons if reason.code not in _CORRECTED][:1]:
        yield 8, ["", one_line(f"The recording is {report.health.status}: {reason.detail}", _SENTENCE)]


def _title(report: pb.Report | pb.Job) -> str:
    run = "" if report.run in ("", ".") else report.run
    if isinstance(report, pb.Job):
        return f"{run or 'Job'}: {ranges_text(report.ranks)} of {report.world_size}"
    return f"{run}/{report.source}" if run else report.source


def _subject(report: pb.Report | pb.Job) -> str:
    """Returns the device and the step time as a sentence."""
    if isinstance(report, pb.Job):
        return f"A step takes {duration_text(report.step_ns)}." if report.step_ns else ""
    step = step_ns_of(report)
    times = f"{duration_text(step)} per step" if step and report.window.basis != "whole" else ""
    without = " without the profiler" if times and report.HasField("unprofiled") else ""
    return f"{', '.join(filter(None, (device_text(report), times + without)))}."


def _account(report: pb.Report | pb.Job) -> Sequence[Part]:
    rows = sorted((row for row in report.account if row.share >= _MIN_ROW), key=lambda row: -row.share)[:_MAX_ROWS]
    return ["", Table("<><", [(row.title, share_text(row.share), bar(row.share)) for row in rows])] if rows else []


def _cause(cause: AnswerCause, code: int) -> Iterator[_Block]:
    place = next((place for place in cause.where if place.share >= _MIN_PLACE), None)
    measured = cause.gain if cause.is_measured else ""
    title = f"{one_line(cause.title, _TITLE)} [{cause.cause}], {cause.cost}"
    yield 0, ["", heading(one_line(f"{title}{measured}", _SENTENCE))]
    if place is not None:
        where = f"in {place_text(place)}: {share_text(place.share)} of this cost{lines_text(place)}"
        yield 0, [f"   {one_line(where, _SENTENCE)}"]
        running = place.line if place.exact else place.hottest_line
        lines = enumerate(place.source, place.source_begin)
        yield 6, [Line(f"     → {number:5} {text}", "code") for number, text in lines if number == running]
    yield 6, [f"   {one_line(f'{row.label}: {value_text(row)}', _SENTENCE)}" for row in cause.evidence[:_MAX_EVIDENCE]]
    fix = list(code_lines(_own_code(cause.fix, code) or cause.fix.code))
    yield 1, ["", *fix[:code], *([Line("       ...", "code")] if len(fix) > code else [])]
    if cause.fix.command:
        yield 1, ["", f"   To measure it: {cause.fix.command}"]


def _own_code(fix: pb.Fix, lines: int) -> str:
    """Returns the patch of the program; if it has more than `lines` lines, only the lines that it adds."""
    patch = fix.patch.splitlines()
    added = [line[1:].strip() for line in patch if line.startswith("+") and not line.startswith("+++ ")]
    return fix.patch if len(patch) <= lines else "\n".join(added)


def _next(others: Iterable[AnswerCause]) -> Sequence[Part]:
    return [one_line(f"Next: {cause.title} [{cause.cause}], {cause.cost}{cause.gain}", _SENTENCE) for cause in others][
        :_MAX_NEXT
    ]


def _without_verdict(report: pb.Report, code: int) -> Iterator[_Block]:
    kind = report.health.status if report.health.status == "unreadable" else report.evidence_source
    yield 0, [_NO_VERDICT.get(kind, "There is no verdict, because the recording is not sufficient.")]
    for rank, reason in enumerate(report.health.reasons[:_MAX_REASONS]):
        yield rank, [f"- {one_line(reason.detail, _SENTENCE)} [{reason.code}]", *fix_lines(reason.fix)]
    yield 4, _account(report)
    if report.memory.parts:
        rows = sorted(report.memory.parts, key=lambda part: -part.bytes)[:_MAX_ROWS]
        table = Table("<>><", [(r.title, share_text(r.share), bytes_text(r.bytes), bar(r.share)) for r in rows])
        yield 1, ["", heading(f"Memory at the peak: {bytes_text(report.memory.peak_bytes)}"), table]
        sites = [site for site in report.memory.sites if place_of(site)][:_MAX_EVIDENCE]
        yield 2, [f"  - {bytes_text(site.bytes)}: {place_of(site)}" for site in sites]
    for finding in report.memory.findings[:1]:
        cause = memory_cause(finding)
        yield from _cause(cause, code)
