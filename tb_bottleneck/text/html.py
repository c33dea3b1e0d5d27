"""Shows documents as HTML: a part of a notebook, or one page without scripts and without other files.

All text is escaped, and names from files are one line each (base/units.py).
"""

from collections.abc import Iterator, Sequence
from html import escape

from tb_bottleneck.base.units import one_line
from tb_bottleneck.report.source_lines import add_source, source_folder
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.document import Document, Line, Table
from tb_bottleneck.text.report import document_of

MAX_BYTES = 1 << 20
"""Largest size of a page in bytes, so that it can be sent. The end of the page states the number of reports that do not
fit."""
_LONGEST = 2000
_STYLE = """
.tbb{--line:#d8dce2;--muted:#5c6470;--sunken:#eef0f3;--bar:#2f95c8;--critical:#b3261e;--warning:#8a5a00;max-width:860px;
line-height:1.5;font-family:system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;font-size:14px}
.tbb h3{font-size:16px;line-height:1.35;margin:20px 0 6px}.tbb p{margin:6px 0;max-width:75ch}
.tbb .muted{color:var(--muted)}.tbb table{border-collapse:collapse;margin:6px 0}.tbb .wide{overflow-x:auto}
.tbb th,.tbb td{text-align:start;padding:3px 12px 3px 0;border-bottom:1px solid var(--line);font-weight:400}
.tbb th{color:var(--muted)}.tbb .figure{text-align:end;white-space:nowrap;font-variant-numeric:tabular-nums}
.tbb .bar{color:var(--bar);letter-spacing:-1px}.tbb .critical{color:var(--critical)}.tbb .warning{color:var(--warning)}
.tbb pre{background:var(--sunken);padding:8px 10px;overflow-x:auto;border-radius:6px;margin:6px 0}
@media (prefers-color-scheme:dark){.tbb{--line:#4a4f57;--muted:#b3b9c2;--sunken:#272727;--bar:#5ab3df;
--critical:#ff8a80;--warning:#ffcc66}}
""".strip()
_PAGE_STYLE = "body{margin:24px;color:#1c1f23;background:#fff}.tbb+.tbb{margin-top:48px}"
_DARK_PAGE = "@media (prefers-color-scheme:dark){body{color:#e8eaed;background:#1f1f1f}}"


def fragment(report: pb.Report) -> str:
    """Returns a report as a part of a page."""
    return f'<div class="tbb"><style>{_STYLE}</style>{_html(document_of(_with_source(report)))}</div>'


def page(reports: Sequence[pb.Report]) -> str:
    """Returns a whole HTML page with the reports, at most MAX_BYTES long."""
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>tb_bottleneck</title>'
        f"<style>{_STYLE}{_PAGE_STYLE}{_DARK_PAGE}</style></head><body>"
    )
    parts, size, left_out = [head], len(head.encode()) + 2_000, 0
    for report in reports:
        text = f'<div class="tbb">{_html(document_of(_with_source(report)))}</div>'
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


def _text(text: str) -> str:
    return escape(one_line(text, _LONGEST))


def _html(document: Document) -> str:
    """Returns the document as HTML. Consecutive lines of code become one block."""
    return "".join(_elements(document))


def _elements(document: Document) -> Iterator[str]:
    code: list[str] = []
    for part in document:
        style = part.style if isinstance(part, Line) else ""
        if style in ("code", "verbatim"):
            code.append(_text(str(part)))
            continue
        if code:
            yield _block(code)
            code = []
        if isinstance(part, Table):
            yield _table(part)
        elif style == "strong":
            yield f"<h3>{_text(part.strip())}</h3>"
        elif part.strip() and style != "rule":
            name = {"title": "muted", "faint": "muted"}.get(style, style)
            yield f'<p class="{name}">{_text(part.strip())}</p>' if name else f"<p>{_text(part.strip())}</p>"
    if code:
        yield _block(code)


def _block(lines: Sequence[str]) -> str:
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    return "<pre>" + "\n".join(line[indent:] for line in lines) + "</pre>"


def _table(table: Table) -> str:
    rows = [f"<tr>{''.join(f'<th>{_text(title)}</th>' for title in table.header)}</tr>"] if table.header else []
    for number, row in enumerate(table.rows):
        cells = "".join(_cell(cell, side) for cell, side in zip(row, table.columns, strict=True))
        rows.append(f"<tr>{cells}</tr>")
        below = table.below[number] if number < len(table.below) else ""
        if below:
            rows.append(f'<tr><td colspan="{len(table.columns)}" class="muted">{_text(below.strip())}</td></tr>')
    return f'<div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div>'


def _cell(cell: str, side: str) -> str:
    name = "bar" if cell and not cell.strip("█") else "figure" if side == ">" else ""
    text = "<br>".join(map(_text, cell.split("\n")))
    return f'<td class="{name}">{text}</td>' if name else f"<td>{text}</td>"
