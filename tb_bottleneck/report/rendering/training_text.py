"""Formats the report of one training as plain text: its job, the recording that counts, names of the others."""

from collections.abc import Iterator

from tb_bottleneck.report.rendering.layout import Layout
from tb_bottleneck.report.rendering.table_rows import Row, kind_of
from tb_bottleneck.report.rendering.text import render
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_NAMED = 8
"""Other recordings that are named; a job may have thousands of ranks."""


def render_training(row: Row, layout: Layout) -> str:
    """Returns the report of a training. Reports of its other recordings are only named."""
    parts = []
    if row.job is not None:
        from tb_bottleneck.report.rendering.job_text import render_job  # most lists have no job

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
