"""Formats jobs and trainings as plain text for a terminal."""

from collections.abc import Iterator

from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.report.figure_text import bounds_text, factor_text, ranges_text, small_share_text, value_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text import efficiency
from tb_bottleneck.text.document import RULE, Line, Part, fix_lines, heading, wrapped
from tb_bottleneck.text.report import account_lines, gain_text, render
from tb_bottleneck.text.sections import advice_lines
from tb_bottleneck.text.table_rows import Row, kind_of
from tb_bottleneck.text.terminal import Layout
from tb_bottleneck.text.verdict import alert_after, alert_before

MAX_SHOWN_GROUPS = 8


def render_job(job: pb.Job, layout: Layout | None = None) -> str:
    """Returns the job as plain text, fitted into `layout`."""
    return (layout or Layout()).text(_lines(job))


def _lines(job: pb.Job) -> Iterator[Part]:
    ranks = f"{ranges_text(job.ranks)} of {job.world_size}"
    yield Line(f"{job.run}: {ranks}" if job.run not in ("", ".") else f"Job: {ranks}", "title")
    yield RULE
    yield from alert_before(job.verdict)
    if job.verdict.action:
        yield Line(f"{job.verdict.action}.", "strong")
    yield Line(job.verdict.headline, "" if job.verdict.action else "strong")
    yield from alert_after(job.verdict)
    if job.HasField("speedup") and not job.culprits:
        yield from wrapped(_without_stragglers(job.speedup))
    if job.step_ns:
        yield f"Step: {duration_text(job.step_ns)}{_hosts(job)}"
    for reason in job.health.reasons:
        yield from wrapped(f"- {reason.detail} [{reason.code}]", "  ")
        yield from fix_lines(reason.fix)
    yield from account_lines(job)
    for number, culprit in enumerate(job.culprits, 1):
        yield from ("", *_culprit(number, culprit))
    if sum(culprit.speedup.basis != "bound" for culprit in job.culprits) > 1:
        gain = f"{factor_text(job.speedup_all.expected)} ({bounds_text(job.speedup_all.low, job.speedup_all.high)})"
        yield from ("", f"All of these fixed whose gain is simulated: {gain} as fast.")
    yield from _groups(job)
    yield from efficiency.efficiency_lines(job.efficiency, explained=("mfu", "samples_per_second"))
    if job.HasField("replay"):
        error = small_share_text(job.replay.error)
        yield from ("", f"Check: without any change, the simulated job differs by {error} from the recorded one.")


def _hosts(job: pb.Job) -> str:
    if not job.hosts:
        return ""
    clock = ""
    if job.HasField("clock_error_ns") and len(job.hosts) > 1:
        clock = f", clocks aligned to {duration_text(job.clock_error_ns)}"
    return f"; {len(job.hosts)} host{'s' if len(job.hosts) > 1 else ''}{clock}"


def _culprit(number: int, culprit: pb.Culprit) -> Iterator[str]:
    host = f", host {culprit.host}" if culprit.host else ""
    yield heading(f"{number}. {culprit.title}  [{culprit.cause}]")
    yield f"   {ranges_text(culprit.ranks)}{host}; cost: {share_text(culprit.cost_share)}{gain_text(culprit.speedup)}"
    for row in culprit.evidence:
        yield from wrapped(f"- {row.label}: {value_text(row)}", "   ")
    yield from advice_lines(culprit.fix)


def _groups(job: pb.Job) -> Iterator[str]:
    if not job.groups:
        return
    yield ""
    yield "Process groups: share of the step in which a rank waits for the others, and for the transfer"
    for group in job.groups[:MAX_SHOWN_GROUPS]:
        size = len(group.ranks) or job.world_size
        bandwidth = f", {group.bus_gbps:.3g} GB/s bus bandwidth" if group.bus_gbps else ""
        shares = f"waiting {share_text(group.wait_share)}, transfer {share_text(group.wire_share)}"
        count = f"{group.count} groups" if group.count > 1 else "1 group"
        yield f"  {group.kind}, {count} of {size} ranks: {shares}{bandwidth}"


def _without_stragglers(speedup: pb.Speedup) -> str:
    if speedup.basis == "none":
        return speedup.because
    bounds = bounds_text(speedup.low, speedup.high)
    gain = f"{factor_text(speedup.expected)} as fast ({bounds}, from the accounts of the ranks)"
    return f"Without stragglers: {gain}. This assumes that {speedup.assumes}."


MAX_NAMED = 8
"""Largest number of other recordings that are named; a job may have thousands of ranks."""


def render_training(row: Row, layout: Layout) -> str:
    """Returns a training as text: its job, if any, and its first report. Its other recordings are only named, not
    described."""
    parts = []
    if row.job is not None:
        parts.append(render_job(row.job, layout))
    parts.append(render(row.report, layout))
    if len(row.reports) > 1:
        parts.append(layout.text(_others(row.reports[1:])))
    return "\n".join(parts)


def _others(reports: tuple[pb.Report, ...]) -> Iterator[str]:
    yield "Other recordings of this training; tb-bottleneck diagnose FILE shows one:"
    for report in reports[:MAX_NAMED]:
        rank = f", rank {report.rank}" if report.world_size > 1 and report.HasField("rank") else ""
        name = report.source if report.run in ("", ".") else f"{report.run}/{report.source}"
        yield f"  {name} ({kind_of(report)}{rank})"
    if len(reports) > MAX_NAMED:
        yield f"  and {len(reports) - MAX_NAMED} more"
