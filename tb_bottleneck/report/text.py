"""A Report as text for a terminal."""

import textwrap
from collections.abc import Iterator

from tb_bottleneck.report import stretches
from tb_bottleneck.report.joined import lines_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import bytes_text, duration_text, share_text

_WIDTH = 100
_BAR = 30
_BASIS = {
    "profiler_step": "cut by prof.step()",
    "inferred": "cut by what repeats, since prof.step() was not called",
    "whole": "not cut into steps: prof.step() was not called",
    "step_clock": "timed by the monitor, without a profiler",
}


def render(report: pb.Report) -> str:
    """The whole report, plain text."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def render_job(job: pb.Job) -> str:
    """The ranks of a job together, plain text."""
    ranks = ", ".join(str(rank) for rank in job.ranks)
    lines = [f"{job.run}: ranks {ranks} together", "─" * min(_WIDTH, 72), *_wrapped(job.verdict.headline)]
    return "\n".join([*lines, *_account(job)]) + "\n"


def _lines(report: pb.Report) -> Iterator[str]:
    yield f"{report.run}/{report.source}" if report.run not in ("", ".") else report.source
    yield "─" * min(_WIDTH, 72)
    if report.HasField("verdict"):
        yield from _wrapped(report.verdict.headline)
        yield from _wrapped(f"{_severity(report.verdict)}, {report.verdict.confidence} confidence.")
    elif report.health.status == "unreadable":
        yield "This file cannot be read as a trace."
    else:
        yield "Cannot tell, because the recording does not allow a verdict."
    yield from _about(report)
    for sentence in lines_of(report):
        yield from _wrapped(sentence)
    yield from _health(report)
    yield from _account(report)
    if len(report.stretches) > 1:
        yield from ("", "When, from the first judged step on", *stretches.lines_of(report))
    yield from _findings(report)
    yield from _plan(report)


def _severity(verdict: pb.Verdict) -> str:
    return {
        "critical": "Critical: a fifth of the time or more is at stake",
        "warning": "Worth mending: a tenth of the time or more is at stake",
        "none": "Nothing to mend outside the device's own work",
    }.get(verdict.severity, verdict.severity)


def _about(report: pb.Report) -> Iterator[str]:
    if report.device.kind:
        name = report.device.name or report.device.kind.upper()
        rank = f", rank {report.rank} of {report.world_size}" if report.world_size > 1 else ""
        yield f"Device: {name}{rank}"
    if report.HasField("window"):
        window, step = report.window, report.window.step_ns
        spread = f" (p10 {duration_text(step.p10)}, p90 {duration_text(step.p90)})" if window.steps > 1 else ""
        if window.basis == "whole":
            yield f"Window: {duration_text(window.end_ns - window.begin_ns)}, {_BASIS['whole']}"
            return
        steps = f"{window.steps} step{'s' if window.steps != 1 else ''} of {duration_text(step.median)}{spread}"
        yield f"Window: {steps}, {_BASIS.get(window.basis, window.basis)}"


def _health(report: pb.Report) -> Iterator[str]:
    if not report.health.reasons:
        return
    yield ""
    yield f"The recording is {report.health.status}:"
    for reason in report.health.reasons:
        yield from _wrapped(f"- {reason.detail} [{reason.code}]", "  ")
        yield from _wrapped(f"  mend: {reason.fix}", "    ")


def _account(report: pb.Report | pb.Job) -> Iterator[str]:
    rows = [row for row in report.account if row.share >= 0.0005]
    if not rows:
        return
    yield ""
    yield "Where the time goes"
    width = max(len(row.title) for row in rows)
    for row in sorted(rows, key=lambda row: -row.share):
        bar = "█" * max(round(row.share * _BAR), 1)
        time = duration_text(row.ns_per_step)
        yield f"  {row.title:{width}}  {share_text(row.share):>6}  {time:>9}  {bar}"


def _findings(report: pb.Report) -> Iterator[str]:
    for number, finding in enumerate(report.findings, 1):
        yield ""
        yield f"{number}. {finding.title}  [{finding.cause}]"
        yield f"   at stake: {share_text(finding.cost_share)} of the time{_gain(finding.speedup)}"
        for row in finding.evidence:
            against = f"  ({row.compared_with})" if row.compared_with else ""
            yield from _wrapped(f"- {row.label}: {_value(row)}{against}", "   ")
        yield from _wrapped(finding.fix.summary, "   ")
        yield ""
        yield from (f"       {line}" for line in finding.fix.code.splitlines())
        yield ""
        yield from _wrapped(f"To confirm: {finding.fix.confirm}", "   ")


def _plan(report: pb.Report) -> Iterator[str]:
    replay, steps = report.replay, report.plan
    if steps:
        yield ""
        per = "the recorded work" if report.window.basis == "whole" else "a step"
        yield f"What to change first (simulated with the ones above it in place: gain in all, time of {per})"
        width = max(len(step.title) for step in steps)
        for number, step in enumerate(steps, 1):
            bounds = f"({step.low:.2f} to {step.high:.2f})"
            after = duration_text(step.step_ns_after)
            yield f"  {number}. {step.title:{width}}  {step.speedup_total:5.2f}x {bounds:16} {after}"
        for title, assumes in dict.fromkeys((step.title, step.assumes) for step in steps):
            yield from _wrapped(f"- {title}: this assumes that {assumes}.", "  ")
    for words in (replay.because, replay.host):
        if words and report.findings:
            yield ""
            yield from _wrapped(words)
    if steps:
        checked = (
            f"{share_text(replay.error)} off the recorded time, {share_text(replay.frozen_share)} of it unexplained"
        )
        yield from _wrapped(f"The unmodified recording, replayed: {checked}.")


def _gain(speedup: pb.Speedup) -> str:
    if speedup.basis == "bound":
        return f"; at best {speedup.high:.2f}x faster (a bound, not simulated)"
    if speedup.basis == "replay":
        return f"; {speedup.expected:.2f}x faster ({speedup.low:.2f} to {speedup.high:.2f}, simulated)"
    return "; no gain is predicted"


def _value(row: pb.Evidence) -> str:
    if not row.HasField("value"):
        return row.text
    if row.unit == "ns":
        return duration_text(row.value)
    if row.unit == "share":
        return share_text(row.value)
    if row.unit == "bytes":
        return bytes_text(row.value)
    return f"{row.value:,.1f}".removesuffix(".0")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + ("  " if indent else ""))
