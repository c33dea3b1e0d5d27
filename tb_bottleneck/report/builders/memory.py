"""Builds the memory part of a report."""

from collections.abc import Iterable, Sequence

from tb_bottleneck.base.units import bytes_text
from tb_bottleneck.bottlenecks.texts import guide_of
from tb_bottleneck.knowledge.memory_texts import (
    MemoryAdvice,
    code_in_fp32,
    evidence_label,
    memory_advice,
    part_label,
    sentence,
)
from tb_bottleneck.memory.categories import Category, EarlierBlocks, MemoryAccount
from tb_bottleneck.memory.finding import CRITICAL, INFO, MemoryFinding, Value
from tb_bottleneck.memory.forecast.forecasts import Forecast
from tb_bottleneck.memory.memory_course import MemoryCourse, MemoryCurve
from tb_bottleneck.memory.sites import Site
from tb_bottleneck.report.figure_text import value_text
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_SITES = 60
LEAST_EARLIER = 0.01
"""Smallest share of the peak for which blocks allocated before the recorded history are described. Chosen."""


def memory_message(
    account: MemoryAccount,
    sites: Sequence[Site],
    findings: Iterable[MemoryFinding],
    forecasts: Iterable[Forecast] = (),
    course: MemoryCourse | None = None,
    earlier: EarlierBlocks | None = None,
) -> pb.Memory:
    """Returns the memory part of a report. Parts that are None or empty are left out.

    `account` is the memory at the peak by category, `sites` are the places that allocated memory, `forecasts` are
    predicted peaks, and `course` is the memory over time. `earlier` are the blocks of unknown kind that were allocated
    before the recorded history."""
    message = pb.Memory(
        peak_bytes=account.peak,
        evidence_source=account.source,
        kind=account.kind,
        allocated_bytes=account.allocated,
        estimated_bytes=account.estimated,
        parts=[_part(account, category, size) for category, size in account.rows],
        sites=_sites(sites),
        findings=findings_message(findings),
        missing=" ".join(_missing(account, earlier)),
        forecasts=[_forecast(forecast, account.capacity) for forecast in forecasts],
    )
    if course is not None:
        _add_course(message, course)
    if account.kind != "cpu":
        message.reserved_bytes = account.reserved
    if account.capacity is not None:
        message.capacity_bytes, message.headroom_bytes = account.capacity, account.headroom or 0
    return message


def _add_course(message: pb.Memory, course: MemoryCourse) -> None:
    """Adds to `message` the memory over time: the curve of the step with the peak, the lifetimes of blocks, and the
    history over the steps."""
    if course.curve is not None:
        message.curve.CopyFrom(_curve(course.curve))
    for lifetime in course.lifetimes:
        added = message.lifetimes.add(site=_site(lifetime.site))
        if lifetime.begin is not None:
            added.begin_ns = lifetime.begin
        if lifetime.end is not None:
            added.end_ns = lifetime.end
    if course.history is not None:
        peaks, ends = course.history.peaks.tolist(), course.history.ends.tolist()
        message.history.CopyFrom(pb.MemoryHistory(peak_bytes=peaks, end_bytes=ends, steps=course.history.steps))


def _curve(curve: MemoryCurve) -> pb.MemoryCurve:
    series = [
        pb.MemorySeries(kind=category.value, title=part_label(category.value), bytes=values.tolist())
        for category, values in curve.bytes_of.items()
    ]
    return pb.MemoryCurve(times_ns=curve.times.tolist(), series=series, peak=curve.peak, step_ns=curve.length)


def findings_message(findings: Iterable[MemoryFinding]) -> list[pb.MemoryFinding]:
    """Returns the findings as messages with titles, evidence and fixes, in the same order."""
    return [_finding(finding) for finding in findings]


def _forecast(forecast: Forecast, capacity: int | None) -> pb.MemoryForecast:
    message = pb.MemoryForecast(
        change=forecast.change,
        title=sentence("forecast", forecast.change, forecast.values),
        peak_bytes=forecast.peak,
        low_bytes=forecast.low,
        high_bytes=forecast.high,
        assumes=sentence("assumes", forecast.change),
    )
    fits = forecast.fits(capacity)
    if fits is not None:
        message.fits = fits
    return message


def _part(account: MemoryAccount, category: Category, size: int) -> pb.MemoryPart:
    kind = category.value
    return pb.MemoryPart(kind=kind, bytes=size, share=account.share(category), title=part_label(kind))


def _sites(sites: Sequence[Site]) -> list[pb.MemorySite]:
    """Returns the first MAX_SITES of `sites` as messages, and one message per category for all others."""
    found = [_site(site) for site in sites[:MAX_SITES]]
    rest: dict[Category, pb.MemorySite] = {}
    for site in sites[MAX_SITES:]:
        others = rest.setdefault(site.category, pb.MemorySite(kind=site.category.value))
        others.bytes += site.bytes
        others.blocks += site.blocks
        others.others += 1
    return found + list(rest.values())


def _site(site: Site) -> pb.MemorySite:
    place = site.place
    return pb.MemorySite(
        kind=site.category.value,
        bytes=site.bytes,
        blocks=site.blocks,
        operator=place.operator,
        module=place.module,
        file=place.file,
        line=min(place.line, 2**31 - 1),
        function=place.function,
        path=place.path,
    )


def _finding(finding: MemoryFinding) -> pb.MemoryFinding:
    advice = memory_advice(finding.cause)
    return pb.MemoryFinding(
        cause=finding.cause,
        title=advice.title,
        severity=finding.severity,
        bytes=finding.bytes,
        evidence=[_evidence(value) for value in finding.evidence],
        fix=pb.Fix(
            summary=advice.summary,
            code=advice.code.strip() + code_in_fp32(finding.cause, (value.name for value in finding.evidence)),
            confirm=advice.confirm,
            action=advice.action,
            documentation=guide_of(finding.cause),
        ),
        headline=_headline(finding, advice),
    )


def _headline(finding: MemoryFinding, advice: MemoryAdvice) -> str:
    """Returns the headline of a finding: the problem and what to change; empty for a finding of severity info."""
    if finding.severity == INFO:
        return ""
    values = {value.name: value_text(_evidence(value)) for value in finding.evidence}
    soon = sentence("urgency", "full", values) if finding.severity == CRITICAL and "steps_left" in values else ""
    return f"{advice.headline.safe_substitute(values)} {soon}".strip()


def _evidence(value: Value) -> pb.Evidence:
    row = pb.Evidence(label=evidence_label(value.name), unit=value.unit)
    if isinstance(value.value, str):
        row.text = value.value
    else:
        row.value = value.value
    return row


def _values_of(earlier: EarlierBlocks) -> dict[str, str]:
    listed = [f"{count:,} of {bytes_text(size)}" for count, size in earlier.sizes]
    more = earlier.count - sum(count for count, _ in earlier.sizes)
    listed += [f"{more:,} others"] if more else []
    return {"bytes": bytes_text(earlier.bytes), "blocks": f"{earlier.count:,}", "sizes": ", ".join(listed)}


def _missing(account: MemoryAccount, earlier: EarlierBlocks | None) -> Iterable[str]:
    """Yields sentences about memory in `account` that is estimated, unexplained or not recorded. `earlier` are blocks
    that were allocated before the recorded history."""
    if earlier is not None and earlier.bytes >= LEAST_EARLIER * account.peak:
        yield sentence("missing", "older", _values_of(earlier))
        if earlier.guess:
            yield sentence("missing", earlier.guess)
    if account.estimated:
        yield sentence("missing", "estimated")
    if account.source == "trace" and account.bytes_of.get(Category.BEFORE_RECORDING):
        yield sentence("missing", "earlier")
    if account.source == "telemetry":
        yield sentence("missing", "counters")
    elif account.kind != "cpu":
        yield sentence("missing", "outside")
