"""Formats a list of reports, one row for each: for a terminal, as CSV, and as Markdown."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.rendering.figures import factor_text
from tb_bottleneck.report.rendering.layout import Layout, cut, shortened
from tb_bottleneck.report.rendering.run_names import recorded_at, short_names
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import duration_text, share_text
from tb_bottleneck.untrusted_text import markdown, one_line

WIDE = 150
"""From this width on, verdict, device and action stand on the line of the recording, not below it."""

_SEVERITIES = ("critical", "warning", "info", "none")
_HEADERS = ("Recording", "Severity", "Verdict", "Share", "Gain left", "Step", "Device", "State", "Action")
_SEVERITY = 1
_FIGURES = (3, 4, 5)
_NARROW = (0, 1, 3, 4, 5, 7)  # verdict, device and action are on a line below
_INDENT = "    "
_MAX_DEVICE = 22  # characters: "NVIDIA H100 80GB HBM3" fits
_CSV_HEADERS = (
    "run", "source", "severity", "confidence", "verdict", "share", "gain", "gain_low", "gain_high", "gain_basis",
    "step_ns", "device", "health", "reason", "action",
)  # fmt: skip
# Cells that a spreadsheet would take for a formula (OWASP, CSV injection).
_FORMULA = re.compile(r"\s*[=+\-@]")


@dataclass(frozen=True)
class Row:
    """One recording of the list."""

    name: str
    report: pb.Report
    digest: Digest

    @property
    def severity(self) -> str:
        """The severity of the verdict; empty without a verdict."""
        return self.digest.verdict.severity if self.digest.verdict is not None else ""

    @property
    def urgency(self) -> int:
        """The position in an order of severity; 0 is critical, and no verdict comes last."""
        return _SEVERITIES.index(self.severity) if self.severity in _SEVERITIES else len(_SEVERITIES)

    @property
    def gain(self) -> float:
        """The predicted speed-up of the whole plan, at least 1; of a bound, the bound."""
        return max(self.digest.gain.expected, 1.0) if self.digest.gain is not None else 1.0

    def cells(self) -> tuple[str, ...]:
        """The texts of the columns _HEADERS."""
        verdict, gain, digest = self.digest.verdict, self.digest.gain, self.digest
        at_most = "≤" if gain is not None and gain.basis == "bound" else ""
        texts = (
            self.name,
            self.severity,
            verdict.title if verdict is not None else f"no verdict: {digest.reason or digest.health}",
            share_text(verdict.share) if verdict is not None else "",
            f"{at_most}{factor_text(self.gain)}" if self.gain > 1 else "",
            duration_text(digest.step_ns) if digest.step_ns is not None else "",
            digest.device,
            digest.health,
            digest.action,
        )
        return tuple(map(one_line, texts))


# The order of rows by the name of a sort, first to last. Among equal rows, the most severe comes first.
SORTS: dict[str, Callable[[Row], float | str]] = {
    "gain": lambda row: -row.gain,
    "step": lambda row: -(row.digest.step_ns or 0.0),
    "severity": lambda row: row.urgency,
    "name": lambda row: row.name,
    "time": lambda row: -(recorded_at(row.report.source) or 0.0),
}


def rows_of(reports: Sequence[pb.Report], sort: str = "gain") -> list[Row]:
    """Returns one row for each report, in the order of a sort of SORTS."""
    rows = [Row(name, report, Digest.of(report)) for name, report in zip(short_names(reports), reports, strict=True)]
    return sorted(rows, key=lambda row: (SORTS[sort](row), row.urgency, -row.gain, row.name))


def table_text(rows: Sequence[Row], layout: Layout) -> str:
    """Returns the table for a terminal. Names and texts that are too long are cut in the middle."""
    return "\n".join(line.rstrip() for line in _table_lines(rows, layout)) + "\n"


def table_csv(rows: Iterable[Row]) -> str:
    """Returns the table as CSV with full names; times in nanoseconds, shares from 0 to 1. Formulas are made text."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(_CSV_HEADERS)
    for row in rows:
        writer.writerow([_safe_cell(value) for value in _values(row)])
    return output.getvalue()


def table_markdown(rows: Iterable[Row]) -> str:
    """Returns the table as Markdown; names cannot become markup."""
    lines: list[tuple[str, ...]] = [_HEADERS, ("---", "---", "---", "---:", "---:", "---:", "---", "---", "---")]
    lines += [tuple(map(markdown, row.cells())) for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _values(row: Row) -> Iterator[object]:
    verdict, gain, digest = row.digest.verdict, row.digest.gain, row.digest
    yield from (row.report.run, row.report.source)
    yield from (verdict.severity, verdict.confidence, verdict.title, verdict.share) if verdict is not None else [""] * 4
    yield from (gain.expected, gain.low, gain.high, gain.basis) if gain is not None else [""] * 4
    yield from ("" if digest.step_ns is None else digest.step_ns, digest.device)
    yield from (digest.health, digest.reason, digest.action)


def _safe_cell(value: object) -> object:
    text = one_line(value) if isinstance(value, str) else ""
    return value if not isinstance(value, str) else f"'{text}" if _FORMULA.match(text) else text


def _table_lines(rows: Sequence[Row], layout: Layout) -> Iterator[str]:
    wide = layout.width >= WIDE
    columns = range(len(_HEADERS)) if wide else _NARROW
    all_cells = [_HEADERS, *(row.cells() for row in rows)]
    widths = _fitted([max(len(cells[column]) for cells in all_cells) for column in columns], layout.width)
    for number, cells in enumerate(all_cells):
        line = [_padded(cells[column], column, width) for column, width in zip(columns, widths, strict=True)]
        if number == 0:
            yield layout.styled_text("  ".join(line), "strong")
            continue
        line[_SEVERITY] = layout.styled_text(line[_SEVERITY], cells[_SEVERITY])
        yield "  ".join(line)
        if not wide:
            yield from _below(cells, layout)


def _padded(text: str, column: int, width: int) -> str:
    fitted = shortened(text, width) if column == 0 else cut(text, width)
    return f"{fitted:>{width}}" if column in _FIGURES else f"{fitted:{width}}"


def _below(cells: tuple[str, ...], layout: Layout) -> Iterator[str]:
    """Yields the second line of a row: verdict, action and device."""
    _, _, verdict, *_, device, _, action = cells
    device = f" · {cut(device, _MAX_DEVICE)}" if device else ""
    text = cut(": ".join(filter(None, (verdict, action))), layout.width - len(_INDENT) - len(device))
    if text or device:
        yield layout.styled_text(f"{_INDENT}{text}{device}", "faint")


def _fitted(widths: list[int], total: int) -> list[int]:
    """Returns the widths of the columns, the widest ones reduced so that all fit, with two spaces in between."""
    fitted = list(widths)
    while sum(fitted) + 2 * (len(fitted) - 1) > total and max(fitted) > 1:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted
