"""Shows documents in a terminal, with rich: fitted into its width, without control characters, and with styles if the
terminal supports them."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tb_bottleneck.base.units import one_line
from tb_bottleneck.text.document import Document, Line, Table

if TYPE_CHECKING:
    from rich.console import Console

# Longer lines of prose are hard to read.
MAX_PROSE = 100
MAX_TABLE, LEAST_WRAPPED = 120, 24
"""Largest width of a table with wrapped cells, and the smallest width of these cells."""
_STYLES = {
    "title": "none",
    "strong": "bold",
    "faint": "dim",
    "critical": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "none": "green",
}
"""rich's styles by our names."""
_COMMENT = re.compile(r"(.*\S)\s{2,}(# .*)")
_FIRST_WORDS = re.compile(r"\s*[^:,.]+")
_GAP = 2  # spaces between two columns


@dataclass(frozen=True)
class Layout:
    """How documents are fitted into a terminal. `width` is in characters. If `styled` is True, escape codes for styles
    are written."""

    width: int = MAX_PROSE
    styled: bool = False

    def text(self, document: Document) -> str:
        """Returns `document` as one text, with one newline at the end."""
        parts = (line for part in document for line in self._lines(part))
        return "\n".join(parts).rstrip() + "\n"

    @cached_property
    def _console(self) -> "Console":
        from rich.console import Console  # takes 15 ms, and is needed for styles only

        return Console(file=StringIO(), force_terminal=True, color_system="standard", width=self.width, emoji=False)

    def _styled(self, text: str, style: str, end: int | None = None) -> str:
        """Returns `text` with the style up to the position `end`; unchanged without styles."""
        if not (self.styled and text):
            return text
        from rich.text import Text

        shown = Text(text)
        shown.stylize(_STYLES[style], 0, end)
        with self._console.capture() as capture:
            self._console.print(shown, no_wrap=True, crop=False, overflow="ignore", end="")
        return capture.get()

    def _lines(self, part: str | Table) -> Iterator[str]:
        if isinstance(part, Table):
            yield from self._table(part)
            return
        style = part.style if isinstance(part, Line) else ""
        clean = one_line(part)
        width = min(self.width, MAX_PROSE)
        if style == "rule":
            yield clean[:width]
        elif style == "verbatim":
            yield clean
        elif style == "code":
            yield from _fitted_code(clean, width)
        elif style in ("strong", "faint"):
            yield from (self._styled(line, style) for line in _parts_of(clean, width))
        else:
            first, *more = _parts_of(clean, width)
            words = _FIRST_WORDS.match(first) if style else None
            yield from (self._styled(first, style, words.end()) if words else first, *more)

    def _table(self, table: Table) -> Iterator[str]:
        header = [Line(title, "strong") for title in table.header]
        rows = [header, *table.rows] if header else table.rows
        texts = [[one_line(cell) for cell in row[:-1]] + [_clean(row[-1])] for row in rows]
        if not texts:
            return
        last = len(table.columns) - 1
        widths = [max(cell_len(row[at]) for row in texts) for at in range(len(table.columns))]
        start = table.indent + sum(widths[:last]) + _GAP * last
        if table.wraps:
            widths[last] = max(min(self.width, MAX_TABLE) - start, LEAST_WRAPPED)
        else:
            widths = fitted(widths, self, table.indent)
        below = iter(table.below)
        for number, (row, cells) in enumerate(zip(rows, texts, strict=True)):
            lines = cells[last].split("\n") if table.wraps else cells[last:]
            first, *more = (part for line in lines for part in _parts_of(line, widths[last])) if table.wraps else lines
            shown = [
                self._cell(row[at], cell, widths[at], side)
                for at, (cell, side) in enumerate(zip([*cells[:last], first], table.columns, strict=True))
            ]
            yield (" " * table.indent + (" " * _GAP).join(shown)).rstrip()
            yield from (" " * start + line for line in more)
            note = "" if header and not number else next(below, "")
            if note:
                yield from self._lines(note)

    def _cell(self, cell: str, text: str, width: int, side: str) -> str:
        """Returns the text of a cell, with spaces up to `width`, and its style."""
        missing = width - cell_len(text)
        shown = text if missing >= 0 else cut(text, width)
        if isinstance(cell, Line):
            shown = self._styled(shown, cell.style)
        space = " " * max(missing, 0)
        return space + shown if side == ">" else shown + space


def shortened(text: str, width: int) -> str:
    """Returns `text` in at most `width` characters. If it is too long, a part before its middle is left out, because
    names mostly differ near their end."""
    if len(text) <= width:
        return text
    head = max((width - 1) // 3, 0)
    return f"{text[:head]}…{text[len(text) - max(width - 1 - head, 0) :]}"


def cut(text: str, width: int) -> str:
    """Returns the beginning of the text, at most `width` characters."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def _clean(cell: str) -> str:
    """Returns the cell without control characters but the ends of its lines."""
    return "\n".join(map(one_line, cell.split("\n")))


def fitted(widths: Sequence[int], layout: Layout, indent: int = 0) -> list[int]:
    """Returns the widths of the columns of a table. The widest columns are reduced until all columns, with two spaces
    in between, fit into `layout`."""
    result, total = list(widths), layout.width - indent
    while sum(result) + _GAP * (len(result) - 1) > total and max(result) > 1:
        result[result.index(max(result))] -= 1
    return result


def _parts_of(line: str, width: int) -> list[str]:
    """Splits a line into parts of at most `width` characters. Parts after the first are indented further if the line is
    indented."""
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + ("  " if indent else ""),
        break_on_hyphens=False,  # names of files are copied
    )


def _fitted_code(line: str, width: int) -> Iterator[str]:
    """Yields a long line of code as several lines of valid code: the comment of the line moves above it, and the line
    is broken after commas. `width` is the largest number of characters per line."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) > width and line.lstrip().startswith("#"):
        yield from textwrap.wrap(line.strip(), width, initial_indent=indent, subsequent_indent=f"{indent}# ")
        return
    comment = _COMMENT.fullmatch(line) if len(line) > width else None
    if comment:
        line = comment[1]
        yield from textwrap.wrap(comment[2], width, initial_indent=indent, subsequent_indent=f"{indent}# ")
    while len(line) > width and (end := line.rfind(", ", len(indent), width)) > 0:
        yield line[: end + 1]
        indent = indent if line.startswith(f"{indent}    ") else f"{indent}    "
        line = f"{indent}{line[end + 2 :]}"
    yield line
