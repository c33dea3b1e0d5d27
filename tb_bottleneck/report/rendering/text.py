"""A Report as text for a terminal."""

import textwrap
from collections.abc import Iterator

from tb_bottleneck.report.cross_check import sentences_of
from tb_bottleneck.report.rendering import phases
from tb_bottleneck.report.rendering.figures import bounds_text, factor_text, small_share_text, value_text
from tb_bottleneck.report.rendering.plan_notes import note_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import duration_text, share_text

_WIDTH = 100
_BAR = 30
_BASIS = {
    "profiler_step": "cut by prof.step()",
    "inferred": "cut by what repeats, since prof.step() was not called",
    "whole": "not cut into steps: prof.step() was not called",
    "step_clock": "timed by the monitor, without a profiler",
}


_DEVICES = {"cuda": "an NVIDIA device", "rocm": "an AMD device"}


def render(report: pb.Report) -> str:
    """The whole report, plain text."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def render_job(job: pb.Job) -> str:
    """The ranks of a job together, plain text."""
    ranks = ", ".join(str(rank) for rank in job.ranks)
    lines = [f"{job.run}: ranks {ranks} together", "─" * min(_WIDTH, 72), *_wrapped(job.verdict.headline)]
    if job.HasField("speedup"):
        lines += _wrapped(_without_stragglers(job.speedup))
    return "\n".join([*lines, *_account(job)]) + "\n"


def _without_stragglers(speedup: pb.Speedup) -> str:
    if speedup.basis == "none":
        return speedup.because
    bounds = bounds_text(speedup.low, speedup.high)
    gain = f"{factor_text(speedup.expected)} the speed ({bounds}, from the ranks' accounts)"
    return f"Without stragglers: {gain}. This assumes that {speedup.assumes}."


def _lines(report: pb.Report) -> Iterator[str]:
    yield f"{report.run}/{report.source}" if report.run not in ("", ".") else report.source
    yield "─" * min(_WIDTH, 72)
    if report.HasField("verdict"):
        yield from _wrapped(report.verdict.headline)
        yield from _wrapped(f"{_severity(report)}, {report.verdict.confidence} confidence.{_why(report)}")
    elif report.health.status == "unreadable":
        yield "This file cannot be read as a trace."
    else:
        yield "Cannot tell, because the recording does not allow a verdict."
    yield from _about(report)
    for sentence in sentences_of(report):
        yield from _wrapped(sentence)
    yield from _health(report)
    yield from _account(report)
    if len(report.phases) > 1:
        yield from ("", "When, from the first judged step on", *phases.lines_of(report))
    yield from _findings(report)
    yield from _plan(report)


def _severity(report: pb.Report) -> str:
    verdict = report.verdict
    if verdict.severity == "none":
        smaller = any(finding.regime != verdict.regime for finding in report.findings)
        return "Nothing that would save a tenth of the time" + (", smaller things below" if smaller else "")
    return {
        "critical": "Critical: a fifth of the time or more is at stake",
        "warning": "Worth mending: a tenth of the time or more is at stake",
        "info": "Minor: less than a tenth of the time is at stake",
    }.get(verdict.severity, verdict.severity)


def _why(report: pb.Report) -> str:
    """What the rule adds to the headline, in its own words: its first sentence says the same."""
    mine = next((regime for regime in report.regimes if regime.regime == report.verdict.regime), None)
    more = mine.because.partition(". ")[2] if mine is not None else ""
    return f" {more}" if more else ""


def _about(report: pb.Report) -> Iterator[str]:
    if report.device.kind:
        kind = report.device.kind
        unnamed = f"{_DEVICES[kind]} whose name was not recorded" if kind in _DEVICES else kind.upper()
        name = report.device.name or unnamed
        rank = f", rank {report.rank} (of {report.world_size} ranks)" if report.world_size > 1 else ""
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
        first, *more = reason.fix.splitlines() or [""]
        yield from (f"      mend: {first}", *(f"            {line}" for line in more))


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
            yield from _wrapped(f"- {row.label}: {value_text(row)}{against}", "   ")
        for remark in (finding.speedup.because, note_of(report, finding)):
            yield from _wrapped(remark, "   ")
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
            bounds, after = f"({bounds_text(step.low, step.high)})", duration_text(step.step_ns_after)
            yield f"  {number}. {step.title:{width}}  {factor_text(step.speedup_total):>5} {bounds:16} {after}"
        for title, assumes in dict.fromkeys((step.title, step.assumes) for step in steps):
            yield from _wrapped(f"- {title}: this assumes that {assumes}.", "  ")
    for words in (replay.because, replay.host):
        if words and report.findings:
            yield ""
            yield from _wrapped(words)
    if steps:
        error, frozen = small_share_text(replay.error), small_share_text(replay.frozen_share)
        yield from _wrapped(
            f"Check: with nothing changed, the simulation is {error} off the recorded time, of which {frozen} is "
            "unexplained."
        )


def _gain(speedup: pb.Speedup) -> str:
    if speedup.basis == "bound":
        return f"; at best {factor_text(speedup.high)} the speed (a bound, not simulated)"
    if speedup.basis == "replay":
        return f"; {factor_text(speedup.expected)} the speed ({bounds_text(speedup.low, speedup.high)}, simulated)"
    return "; no gain is predicted"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + ("  " if indent else ""))
