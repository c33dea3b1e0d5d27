"""Formats reports as plain text for a terminal."""

from collections.abc import Iterator

from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.report.cross_check import sentences_of
from tb_bottleneck.report.digest import shown_ns, step_ns_of
from tb_bottleneck.report.figure_text import (
    VAGUE,
    bounds_text,
    factor_text,
    gain_range_text,
    lines_text,
    occurrence_text,
    place_text,
    small_share_text,
    value_text,
)
from tb_bottleneck.report.memory_alert import worth_fixing
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text import efficiency, sections
from tb_bottleneck.text.document import RULE, Line, Part, Table, bar, fix_lines, heading, wrapped
from tb_bottleneck.text.efficiency import PER_STEP
from tb_bottleneck.text.terminal import Layout
from tb_bottleneck.text.verdict import checked_lines, note_of, verdict_lines

# Largest number of places, and smallest shares of the cost of a place and of an account row with an explanation. The
# JSON form has all of them.
_MAX_PLACES, _MIN_PLACE_SHARE, _MIN_MEANING_SHARE = 3, 0.05, 0.05
# Without a schedule, torch.profiler writes no marks although prof.step() is called (torch/profiler/profiler.py).
_BASIS = {
    "profiler_step": "marked by prof.step()",
    "inferred": "found from repetition: no step marks were recorded",
    "whole": "judged as a whole: no step marks were recorded",
    "step_clock": "timed by the monitor, without a profiler",
}


_SOURCES = {"trace": ", from the trace", "both": ", from trace and telemetry"}  # a step clock means telemetry
_RECORDED = ("profiler_step", "inferred")  # bases of traces, whose steps take longer because of the profiler
_DEVICES = {"cuda": "an NVIDIA device", "rocm": "an AMD device"}


def render(report: pb.Report, layout: Layout | None = None) -> str:
    """Returns the report as plain text, fitted into `layout`."""
    return (layout or Layout()).text(document_of(report))


def document_of(report: pb.Report) -> Iterator[Part]:
    """Yields the parts of the document about a report."""
    yield Line(f"{report.run}/{report.source}" if report.run not in ("", ".") else report.source, "title")
    yield RULE
    if report.job_headline:
        yield from (Line(report.job_headline, "strong"), "", "This rank alone:")
    if report.HasField("verdict"):
        yield from verdict_lines(report)
    elif report.health.status == "unreadable":
        yield "This file cannot be read as a trace."
    elif report.evidence_source == "snapshot":
        yield "A snapshot of the allocator: it shows the memory, and has no times."
    else:
        yield "There is no verdict, because the recording is not sufficient."
    yield from _about(report)
    for sentence in sentences_of(report):
        yield from wrapped(sentence)
    yield from account_lines(report)
    if report.HasField("run_time"):
        yield from ("", *sections.run_time_lines(report.run_time))
    if len(report.phases) > 1:
        yield from ("", heading("Phases, from the first analysed step on"), *sections.phase_lines(report))
    yield from _health(report)
    yield from _findings(report)
    yield from _plan(report)
    if report.step_parts:
        yield from ("", *sections.step_part_lines(report.step_parts))
    if report.HasField("input"):
        yield from ("", *sections.input_pipeline_lines(report.input))
    per = "in all" if report.window.basis == "whole" else PER_STEP
    if report.HasField("compilation"):
        yield from ("", *efficiency.compilation_lines(report.compilation, per))
    if report.HasField("graphs"):
        yield from ("", *efficiency.graph_lines(report.graphs, per))
    yield from efficiency.efficiency_lines(report.efficiency)
    yield from sections.headroom_lines(report.headroom)
    if report.HasField("memory"):
        yield from ("", *sections.memory_lines(report.memory))
    if report.regimes or report.broken_parts:
        yield from ("", heading("What was checked"), *checked_lines(report))


def _about(report: pb.Report) -> Iterator[Part]:
    if report.device.kind:
        rank = f", rank {report.rank} (of {report.world_size} ranks)" if report.world_size > 1 else ""
        count = f", one of {report.device.count} in use" if report.device.count > 1 else ""
        yield f"Device: {device_text(report)}{count}{rank}"
    if report.HasField("unprofiled"):
        yield f"Step: {duration_text(step_ns_of(report) or 0.0)} without the profiler"
    else:
        yield from _window(report)


def _window(report: pb.Report) -> Iterator[Part]:
    if not report.HasField("window"):
        return
    window, step = report.window, report.window.step_ns
    basis, source = _BASIS.get(window.basis, window.basis), _SOURCES.get(report.evidence_source, "")
    steps = ""
    if window.basis != "whole":
        kind = "profiled step" if window.basis in _RECORDED else "step"
        of = ", corrected to" if window.HasField("recorded_step_ns") else " of"
        spread = _spread(step) if window.steps > 1 else ""
        steps = f", {window.steps} {kind}{'s' if window.steps != 1 else ''}{of} {duration_text(step.mean)}{spread}"
    yield f"Window: {_length(window)}{steps}, {basis}{source}"


def device_text(report: pb.Report) -> str:
    """Returns the name of the device, or its kind if the name was not recorded; empty if the kind is not known."""
    kind = report.device.kind
    unnamed = f"{_DEVICES[kind]} (name not recorded)" if kind in _DEVICES else kind.upper()
    return report.device.name or unnamed


def _length(window: pb.Window) -> str:
    """Returns the length of the window as text. For a trace or a whole recording, it is the time from begin to end. For
    telemetry, it is (number of steps * mean step time); profiled steps do not count."""
    timed = window.basis not in _RECORDED and window.basis != "whole"
    return duration_text(window.steps * window.step_ns.mean if timed else window.end_ns - window.begin_ns)


def _spread(step: pb.Spread) -> str:
    """Returns the percentiles of the step times as text that follows the mean."""
    p10, median, p90 = (duration_text(value) for value in (step.p10, step.median, step.p90))
    return f" on average (p10 {p10}, median {median}, p90 {p90})"


def _health(report: pb.Report) -> Iterator[Part]:
    window = list(_window(report)) if report.HasField("unprofiled") else []
    if window or report.window.correction or report.health.reasons:
        yield ""
        yield heading(f"The recording is {report.health.status}" if report.health.reasons else "The recording")
        yield from window
        for sentence in filter(None, (report.window.correction, report.unprofiled.sentence)):
            yield from wrapped(sentence)
    for reason in report.health.reasons:
        yield from wrapped(f"- {reason.detail} [{reason.code}]", "  ")
        yield from fix_lines(reason.fix)


def account_lines(report: pb.Report | pb.Job) -> Iterator[Part]:
    """Yields the account of the time, as a bar chart with one line per regime; nothing without an account."""
    rows = sorted((row for row in report.account if row.share >= 0.0005), key=lambda row: -row.share)
    if not rows:
        return
    yield ""
    yield heading("Where the time goes")
    yield Table(
        "<>><",
        [
            (row.title, share_text(row.share), duration_text(shown_ns(report, row.ns_per_step)), bar(row.share))
            for row in rows
        ],
        below=[
            Line(f"    {row.meaning}", "faint") if row.meaning and row.share >= _MIN_MEANING_SHARE else ""
            for row in rows
        ],
    )


def _findings(report: pb.Report) -> Iterator[Part]:
    about_memory: list[Iterator[Part]] = [
        sections.memory_finding_lines(finding) for finding in worth_fixing(report.memory)
    ]
    about_time = [_finding(report, finding) for finding in report.findings]
    if report.HasField("verdict") and not about_memory + about_time:
        yield from ("", "No known cause was found in this recording.")
    first, second = (about_memory, about_time) if report.verdict.memory_alert.leads else (about_time, about_memory)
    for number, (title, *lines) in enumerate(first + second, 1):
        yield from ("", heading(f"{number}. {title}"), *lines)


def _finding(report: pb.Report, finding: pb.Finding) -> Iterator[Part]:
    """Yields the title of a finding, then its details."""
    yield f"{finding.title}  [{finding.cause}]"
    yield f"   cost: {share_text(finding.cost_share)} of the time{gain_text(finding.speedup)}"
    yield from _places(finding)
    for row in finding.evidence:
        reference = f"  ({row.compared_with})" if row.compared_with else ""
        occurrence = occurrence_text(row, report.window.begin_ns)
        yield from wrapped(f"- {row.label}: {value_text(row)}{reference}{occurrence}", "   ")
    planned = {step.assumes for step in report.plan}
    assumes = finding.speedup.assumes
    assumption = f"This assumes that {assumes}." if assumes and assumes not in planned else ""
    for note in (finding.speedup.because, assumption, note_of(report, finding)):
        yield from wrapped(note, "   ")
    yield from sections.advice_lines(finding.fix)


def _places(finding: pb.Finding) -> Iterator[Part]:
    for place in finding.where[:_MAX_PLACES]:
        if place.share < _MIN_PLACE_SHARE:
            continue
        module = f", in {place.module}" if place.module and (place.file or place.block) else ""
        lines = lines_text(place)
        yield from wrapped(f"in {place_text(place)}{module}: {share_text(place.share)} of this cost{lines}", "   ")
        if len(place.chain) > 1:
            yield from wrapped(" > ".join(place.chain), "       ")
        for number, text in enumerate(place.source, place.source_begin):
            mark = "→" if number == (place.line if place.exact else place.hottest_line) else " "
            yield Line(f"     {mark} {number:5} {text}", "code")


def _plan(report: pb.Report) -> Iterator[Part]:
    replay, steps = report.replay, report.plan
    if steps:
        yield ""
        per = "the recorded work" if report.window.basis == "whole" else "a step on average"
        yield heading("What to change first")
        yield f"  Each is simulated together with those above it: total gain, time of {per}."
        gains = [gain_range_text(step.speedup_total, step.low, step.high) for step in steps]
        rows = [
            (f"{number}. {gain}", f"({bounds})", duration_text(shown_ns(report, step.step_ns_after)), step.title)
            for number, (step, (gain, bounds)) in enumerate(zip(steps, gains, strict=True), 1)
        ]
        yield Table("<<><", rows)
        for title, assumes in dict.fromkeys((step.title, step.assumes) for step in steps):
            yield from wrapped(f"- {title}: this assumes that {assumes}.", "  ")
    for text in (replay.because, replay.host):
        if text:
            yield ""
            yield from wrapped(text)
    if report.HasField("replay") and not replay.because:
        yield from () if replay.host else ("",)
        error, frozen = small_share_text(replay.error), small_share_text(replay.frozen_share)
        yield from wrapped(
            f"Check: without any change, the simulated time differs by {error} from the recorded time. "
            f"Waiting that the simulation cannot change takes {frozen} of it."
        )


def gain_text(speedup: pb.Speedup) -> str:
    """Returns the gain of a fix as the end of a sentence, such as "; 1.24x as fast (1.1 to 1.3, simulated)"."""
    if speedup.basis == "bound":
        most = f"{factor_text(speedup.high)} as fast"
        if factor_text(speedup.expected) != factor_text(speedup.high):
            alone = f"{factor_text(speedup.expected)} {speedup.unless or 'if nothing else becomes faster'}"
            return f"; at best {most} (a bound, not simulated), {alone}"
        if speedup.unless:
            return f"; up to {most}, {speedup.unless} (not simulated)"
        return f"; at best {most} (a bound, not simulated)"
    if speedup.basis == "replay":
        factor, range_text = gain_range_text(speedup.expected, speedup.low, speedup.high)
        more = f"; {speedup.unless}" if speedup.unless else ""
        return f"; {factor} as fast ({range_text}, simulated{more})"
    if speedup.basis == "trial":
        predicted = f", predicted {factor_text(speedup.predicted)}" if speedup.HasField("predicted") else ""
        measured = f"{factor_text(speedup.expected)} ({bounds_text(speedup.low, speedup.high)}) with {speedup.assumes}"
        return f"; measured {measured}{predicted}"
    if speedup.basis == "estimate":
        least, changes = factor_text(speedup.low), "from measured changes"
        if speedup.high > VAGUE * speedup.low:
            return f"; {least} as fast or more ({changes}, which differ widely: measure it)"
        return f"; roughly {factor_text(speedup.expected)} as fast ({least} or more, {changes})"
    return "; no gain is predicted"
