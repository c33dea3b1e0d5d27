"""Formats the memory part of a report as plain text."""

from collections.abc import Iterator

from tb_bottleneck.base.units import bytes_text, share_text
from tb_bottleneck.report.memory_alert import worth_fixing
from tb_bottleneck.report.rendering.figures import value_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

_BAR = 25
_SITES = 5


def lines_of(memory: pb.Memory) -> Iterator[str]:
    """Yields the lines of the section about memory. Findings worth fixing are left out, because they are listed with
    the report's findings."""
    peak = f"Memory at the peak: {bytes_text(memory.peak_bytes)}{_headroom(memory)}"
    yield Line(peak if memory.parts else "Memory", "strong")
    rows = [part for part in memory.parts if part.share >= 0.0005]
    width = max((len(part.title) for part in rows), default=0)
    for part in sorted(rows, key=lambda part: -part.bytes):
        bar = "█" * max(round(part.share * _BAR), 1)
        yield f"  {part.title:{width}}  {share_text(part.share):>6}  {bytes_text(part.bytes):>9}  {bar}"
    places = [site for site in memory.sites if place_of(site)][:_SITES]
    if places:
        yield "  allocated by"
        for site in places:
            yield from wrapped(f"- {bytes_text(site.bytes)}: {place_of(site)}", "  ")
    yield from wrapped(memory.missing, "  ")
    if memory.forecasts:
        yield "  predicted peak with"
    for forecast in memory.forecasts:
        yield from wrapped(f"- {forecast_text(forecast)}", "  ")
    listed = {finding.cause for finding in worth_fixing(memory)}  # among the findings of the report
    for finding in memory.findings:
        if finding.cause not in listed:
            title, *lines = finding_lines(finding)
            yield from ("", Line(f"  {title}", "strong"), *lines)


def forecast_text(forecast: pb.MemoryForecast) -> str:
    """Returns a predicted peak as text."""
    bounds = f"{bytes_text(forecast.low_bytes)} to {bytes_text(forecast.high_bytes)}"
    fits = ("; fits" if forecast.fits else "; may not fit") if forecast.HasField("fits") else ""
    return f"{forecast.title}: {bytes_text(forecast.peak_bytes)} ({bounds}{fits})"


def place_of(site: pb.MemorySite) -> str:
    """Returns the recorded facts about the place that allocated memory, as text; empty if none was recorded."""
    line = f"{site.file}:{site.line} {site.function}" if site.line else f"{site.file} {site.function}".strip()
    return ", ".join(part for part in (line, site.module, site.operator) if part)


def _headroom(memory: pb.Memory) -> str:
    if not memory.HasField("capacity_bytes"):
        return ""
    return f" of {bytes_text(memory.capacity_bytes)}, {bytes_text(memory.headroom_bytes)} free"


def finding_lines(finding: pb.MemoryFinding) -> Iterator[str]:
    """Yields the title of a memory finding, then its details."""
    yield f"{finding.title}  [{finding.cause}]"
    if finding.headline:
        yield f"   {finding.severity}; about the memory"
    for row in finding.evidence:
        yield from wrapped(f"- {row.label}: {value_text(row)}", "   ")
    yield from wrapped(finding.fix.summary, "   ")
    yield ""
    yield from (Line(f"       {line}", "code") for line in finding.fix.code.splitlines())
    yield ""
    yield from wrapped(f"To confirm: {finding.fix.confirm}", "   ")
    if finding.fix.documentation:
        yield f"   Documentation: {finding.fix.documentation}"
