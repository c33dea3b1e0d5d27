"""Formats reports as HTML: a part of a notebook, or one page without scripts and without other files.

All text is escaped, and names from files are one line each (base/units.py).
"""

from collections.abc import Iterator, Sequence
from html import escape

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import bytes_text, duration_text, share_text
from tb_bottleneck.base.untrusted_text import one_line
from tb_bottleneck.report.digest import step_ns_of
from tb_bottleneck.report.rendering.figures import lines_text, place_text, value_text
from tb_bottleneck.report.rendering.text import gain_text
from tb_bottleneck.report.rendering.verdict import note_of
from tb_bottleneck.report.source_lines import add_source, source_folder
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_BYTES = 1 << 20
"""Largest size of a page in bytes, so that it can be sent. The end of the page states the number of reports that do not
fit."""
_MAX_PLACES, _MIN_PLACE_SHARE, _LONGEST = 3, 0.05, 400
_STYLE = """
.tbb{--line:#d8dce2;--muted:#5c6470;--sunken:#eef0f3;--lost:#e2711d;--works:#2f95c8;max-width:860px;line-height:1.5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;font-size:14px}
.tbb h2{font-size:20px;line-height:1.3;margin:8px 0}.tbb h3{font-size:15px;margin:18px 0 6px}
.tbb p{margin:6px 0;max-width:75ch}.tbb .muted{color:var(--muted)}.tbb table{border-collapse:collapse;width:100%}
.tbb th,.tbb td{text-align:start;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);font-weight:400}
.tbb .figure{text-align:end;white-space:nowrap;font-variant-numeric:tabular-nums}
.tbb .bar{display:block;height:10px;background:var(--works)}.tbb .lost{background:var(--lost)}
.tbb pre{background:var(--sunken);padding:8px 10px;overflow-x:auto;border-radius:6px;margin:6px 0}
.tbb .runs{font-weight:700}.tbb section{border-top:1px solid var(--line);margin-top:14px}
@media (prefers-color-scheme:dark){.tbb{--line:#4a4f57;--muted:#b3b9c2;--sunken:#272727}}
""".strip()
_PAGE_STYLE = "body{margin:24px;color:#1c1f23;background:#fff}.tbb+.tbb{margin-top:48px}"
_DARK_PAGE = "@media (prefers-color-scheme:dark){body{color:#e8eaed;background:#1f1f1f}}"


def fragment(report: pb.Report) -> str:
    """Returns a report as a part of a page: headline, account (time per regime) and findings."""
    return f'<div class="tbb"><style>{_STYLE}</style>{"".join(_report(_with_source(report)))}</div>'


def page(reports: Sequence[pb.Report]) -> str:
    """Returns a whole HTML page with the reports, at most MAX_BYTES long."""
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>tb_bottleneck</title>'
        f"<style>{_STYLE}{_PAGE_STYLE}{_DARK_PAGE}</style></head><body>"
    )
    parts, size, left_out = [head], len(head.encode()) + 2_000, 0
    for report in reports:
        text = f'<div class="tbb">{"".join(_report(_with_source(report)))}</div>'
        size += len(text.encode())
        if size > MAX_BYTES:
            left_out += 1
        else:
            parts.append(text)
    if left_out:
        parts.append(f'<p class="tbb">{left_out:,} more reports do not fit on this page.</p>')
    return "".join([*parts, "</body></html>\n"])


def _with_source(report: pb.Report) -> pb.Report:
    shown = pb.Report()
    shown.CopyFrom(report)
    add_source(shown, source_folder())
    return shown


def _text(text: object) -> str:
    return escape(one_line(text, _LONGEST))


def _report(report: pb.Report) -> Iterator[str]:
    name = f"{report.run}/{report.source}" if report.run not in ("", ".") else report.source
    yield f'<p class="muted">{_text(name)}</p>'
    verdict = report.verdict
    if report.HasField("verdict"):
        yield f"<h2>{_text(verdict.action or verdict.headline)}</h2>"
        if verdict.action:
            yield f"<p>{_text(verdict.headline)}</p>"
        yield f'<p class="muted">Severity: {_text(verdict.severity)}; confidence: {_text(verdict.confidence)}</p>'
    else:
        yield "<h2>There is no verdict.</h2>"
    yield from _about(report)
    for reason in report.health.reasons:
        yield f"<p>{_text(reason.detail)}</p>"
    yield from _account(report)
    for number, finding in enumerate(report.findings, 1):
        yield from _finding(report, number, finding)
    yield from _memory(report.memory)


def _about(report: pb.Report) -> Iterator[str]:
    device, step = report.device.name or report.device.kind, step_ns_of(report)
    facts = [f"Device: {device}"] if device else []
    facts += [f"step: {duration_text(step)}"] if step else []
    facts += [f"{report.window.steps:,} steps"] if report.window.steps else []
    if facts:
        yield f'<p class="muted">{_text(", ".join(facts))}</p>'


def _account(report: pb.Report) -> Iterator[str]:
    rows = sorted((row for row in report.account if row.share >= 0.0005), key=lambda row: -row.share)
    if not rows:
        return
    yield "<h3>Where each step's time goes</h3><table><tbody>"
    for row in rows:
        works = row.regime in (Regime.COMPUTE, Regime.MEMORY)
        bar = f'<span class="bar{"" if works else " lost"}" style="width:{max(100 * row.share, 0.5):.1f}%"></span>'
        yield (
            f'<tr><th scope="row">{_text(row.title)}</th><td class="figure">{share_text(row.share)}</td>'
            f'<td class="figure">{duration_text(row.ns_per_step)}</td><td style="width:45%">{bar}</td></tr>'
        )
    yield "</tbody></table>"


def _finding(report: pb.Report, number: int, finding: pb.Finding) -> Iterator[str]:
    yield f"<section><h3>{number}. {_text(finding.title)}</h3>"
    yield f"<p>Cost: {share_text(finding.cost_share)} of the time{_text(gain_text(finding.speedup))}</p>"
    for place in (place for place in finding.where[:_MAX_PLACES] if place.share >= _MIN_PLACE_SHARE):
        cost = f"{share_text(place.share)} of this cost{lines_text(place)}"
        yield f"<p><code>{_text(place_text(place))}</code>: {cost}</p>"
        running = place.line if place.exact else place.hottest_line
        lines = [
            f"<span{' class=runs' if number == running else ''}>{number:5} {escape(text)}</span>"
            for number, text in enumerate(place.source, place.source_begin)
        ]
        if lines:
            yield "<pre>" + "\n".join(lines) + "</pre>"
    if finding.evidence:
        rows = (f"<li>{_text(row.label)}: {_text(value_text(row))}</li>" for row in finding.evidence)
        yield f"<ul>{''.join(rows)}</ul>"
    for note in (finding.speedup.because, note_of(report, finding), finding.fix.summary):
        if note:
            yield f"<p>{escape(note)}</p>"
    if finding.fix.code:
        yield f"<pre>{escape(finding.fix.code)}</pre>"
    yield f'<p class="muted">To confirm: {escape(finding.fix.confirm)}</p></section>'


def _memory(memory: pb.Memory) -> Iterator[str]:
    if not memory.parts:
        return
    yield f"<section><h3>Memory at the peak: {bytes_text(memory.peak_bytes)}</h3><table><tbody>"
    for part in sorted(memory.parts, key=lambda part: -part.bytes):
        yield (
            f'<tr><th scope="row">{_text(part.title)}</th><td class="figure">{share_text(part.share)}</td>'
            f'<td class="figure">{bytes_text(part.bytes)}</td></tr>'
        )
    yield "</tbody></table>"
    for finding in memory.findings:
        yield f"<p><b>{_text(finding.title)}.</b> {escape(finding.fix.summary)}</p>"
    yield "</section>"
