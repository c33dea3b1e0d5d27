"""Sections of a report besides its verdict and findings: the run over time, the input pipeline, parts of a step,
headroom (what the run could still gain), and memory."""

from collections.abc import Iterator, Sequence

from tb_bottleneck.base.units import NS_PER_S, bytes_text, duration_text, share_text
from tb_bottleneck.report.figure_text import count_text, place_text, value_text
from tb_bottleneck.report.memory_alert import worth_fixing
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.document import Line, Part, Table, bar, code_lines, heading, wrapped

MAX_LINES = 20
_MINUTE, _HOUR = 60, 3600


def phase_lines(report: pb.Report) -> Iterator[Part]:
    """Yields one line for each phase, with its times from the start of the first phase, its regime, its share and its
    severity. At most MAX_LINES phases are shown.

    Yields nothing if there is only one phase.
    """
    if len(report.phases) < 2:
        return
    begin = report.phases[0].begin_ns
    rows = [
        (
            f"{_clock(phase.begin_ns - begin)} to {_clock(phase.end_ns - begin)}",
            phase.title,
            share_text(phase.share),
            "" if phase.severity == "none" else phase.severity,
        )
        for phase in report.phases[:MAX_LINES]
    ]
    yield Table("><><", rows)
    if len(report.phases) > MAX_LINES:
        yield f"  and {len(report.phases) - MAX_LINES} more"


def _clock(ns: float) -> str:
    """Formats a time in ns as hours, minutes and seconds: 1:02:03 or 2:03."""
    seconds = round(ns / NS_PER_S)
    hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


LEAST = 0.005


def run_time_lines(run: pb.RunTime) -> Iterator[Part]:
    """Yields one line for each part of the run's wall time with at least the fraction LEAST, the largest part first."""
    parts = sorted((part for part in run.parts if part.share >= LEAST), key=lambda part: -part.share)
    if not parts:
        return
    yield heading(f"The whole run, {duration_text(run.elapsed_ns)}")
    yield Table(
        "<>><", [(part.title, share_text(part.share), duration_text(part.ns), bar(part.share)) for part in parts]
    )


_SITES = 5


def memory_lines(memory: pb.Memory) -> Iterator[Part]:
    """Yields the lines of the section about memory. Findings worth fixing are left out, because they are listed with
    the report's findings."""
    peak = f"Memory at the peak: {bytes_text(memory.peak_bytes)}{_headroom(memory)}"
    yield heading(peak if memory.parts else "Memory")
    rows = [part for part in memory.parts if part.share >= 0.0005]
    rows.sort(key=lambda part: -part.bytes)
    yield Table(
        "<>><", [(part.title, share_text(part.share), bytes_text(part.bytes), bar(part.share)) for part in rows]
    )
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
            title, *lines = memory_finding_lines(finding)
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


def memory_finding_lines(finding: pb.MemoryFinding) -> Iterator[Part]:
    """Yields the title of a memory finding, then its details."""
    yield f"{finding.title}  [{finding.cause}]"
    if finding.headline:
        yield f"   {finding.severity}; about the memory"
    for row in finding.evidence:
        yield from wrapped(f"- {row.label}: {value_text(row)}", "   ")
    yield from advice_lines(finding.fix)


_KINDS = {"rotational": "a rotating disk", "ssd": "an SSD", "network": "a network file system", "memory": "memory"}
_MIN_SHARE = 0.005


def input_pipeline_lines(pipeline: pb.InputPipeline) -> Iterator[Part]:
    """Yields the lines about the stages of the input pipeline."""
    yield heading("Making a batch, by stage" if pipeline.stages else "Making a batch")
    if pipeline.stages:
        yield from wrapped(input_text(pipeline))
    stages = [stage for stage in pipeline.stages if stage.share >= _MIN_SHARE]
    rows = [
        (
            stage.title,
            share_text(stage.share),
            duration_text(stage.ns_per_batch) if stage.HasField("ns_per_batch") else "",
            place_text(stage.place) if stage.HasField("place") else "",
        )
        for stage in stages
    ]
    if rows:
        yield Table("<>><", rows)
    if pipeline.HasField("storage"):
        yield from wrapped(_storage(pipeline.storage))


def input_text(pipeline: pb.InputPipeline) -> str:
    """Returns a sentence about who makes batches, and how long a batch takes."""
    how = "from its Python frames" if pipeline.basis == "frames" else "from samples of the workers' stacks"
    parts = [f"One process takes {duration_text(pipeline.batch_ns)} for a batch"] if pipeline.batch_ns else []
    if pipeline.HasField("workers"):
        count = f"{pipeline.workers:.0f} workers make them" if pipeline.workers != 1 else "1 worker makes them"
        parts.append(count if pipeline.workers else "the training process makes them")
    if pipeline.HasField("workers_needed"):
        parts.append(f"{pipeline.workers_needed:.0f} would keep up with the rest of the step")
    if pipeline.HasField("waiting_share"):
        parts.append(f"a worker has no batch to make for {share_text(pipeline.waiting_share)} of its time")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]} ({how})." if text else f"The stages are {how}."


def _storage(storage: pb.InputStorage) -> str:
    parts = []
    if storage.kind or storage.filesystem:
        name = f" ({storage.filesystem})" if storage.filesystem and storage.kind else storage.filesystem
        parts.append(f"on {_KINDS.get(storage.kind, '')}{name}")
    if storage.HasField("read_bytes_per_batch"):
        text = f"{bytes_text(storage.read_bytes_per_batch)} per batch in {storage.reads_per_batch:.0f} calls"
        if storage.HasField("disk_bytes_per_batch"):
            text += f", {bytes_text(storage.disk_bytes_per_batch)} of them from the disk"
        parts.append(text)
    if storage.HasField("opens_per_batch"):
        parts.append(f"{count_text(storage.opens_per_batch)} files opened per batch")
    return f"Data: {'; '.join(parts)}."


TITLE = "Parts of the step, by the functions that the loop calls"


def step_part_lines(parts: Sequence[pb.StepPart]) -> Iterator[Part]:
    """Yields the lines about the parts of a step: one paragraph for each part."""
    yield heading(TITLE)
    for part in parts:
        of = ", ".join(f"{row.title} {share_text(row.share)}" for row in part.account)
        name = place_text(part.place) if part.HasField("place") else "the loop itself"
        yield from wrapped(f"- {name}: {share_text(part.share)} of the step{f': {of}' if of else ''}", "  ")


def headroom_lines(headroom: Sequence[pb.Headroom]) -> Iterator[Part]:
    """Yields the lines about what a run without a problem could still gain; none if `headroom` is empty."""
    if not headroom:
        return
    yield ""
    yield heading("Where headroom remains")
    for item in headroom:
        yield from wrapped(f"- {item.title}{bound_text(item)}", "  ")
        yield from wrapped(", ".join(f"{row.label}: {value_text(row)}" for row in item.evidence), "      ")
        yield from wrapped(item.summary, "      ")


def bound_text(item: pb.Headroom) -> str:
    """Returns the largest possible gain of `item` as the end of its title; empty if it is not known."""
    return f": at most {share_text(item.share)} of the time" if item.HasField("share") else ""


def advice_lines(fix: pb.Fix) -> Iterator[str]:
    """Yields the advice about a finding: summary, code, how to confirm and measure it, and its documentation."""
    yield from wrapped(fix.summary, "   ")
    yield from ("", *code_lines(fix.code), "")
    if fix.patch:
        yield from ("   As a patch of the program, for `patch -p0`:", *code_lines(fix.patch), "")
    yield from wrapped(f"To confirm: {fix.confirm}", "   ")
    if fix.command:
        yield f"   To measure it: {fix.command}"
    if fix.documentation:
        yield f"   Documentation: {fix.documentation}"
