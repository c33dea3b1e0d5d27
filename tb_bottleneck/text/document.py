"""The parts of a document, which terminal.py and html.py show: lines of text, and tables.

A document is an iterable of parts. A line that begins with spaces is indented, and its continuation lines too.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from tb_bottleneck.base.measure import Record

_COMMENT = re.compile(r"(.*\S)\s{2,}(# .*)")


class Line(str):
    """A text with a style: `title`, `strong` (a heading), `faint`, `code`, `verbatim` (never broken), `rule`, or a
    severity, which colours the first words of a line, or the whole cell of a table."""

    __slots__ = ("style",)
    style: str

    def __new__(cls, text: str, style: str) -> "Line":
        """Returns a Line with the text `text` and the style `style`."""
        line = super().__new__(cls, text)
        line.style = style
        return line


class Table(Record, frozen=True):
    """A table with one line per row. `columns` has "<" or ">" per column: where its texts are aligned.

    `below` has for each row the line below it, or an empty text; it may be empty. A cell longer than the terminal
    allows continues on further lines if `wraps` is True, otherwise its end is left out."""

    columns: str
    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()
    below: Sequence[str] = ()
    indent: int = 2
    wraps: bool = False


Part: TypeAlias = str | Table
Document: TypeAlias = Iterable[Part]

RULE = Line("─" * 72, "rule")
BAR_WIDTH = 25
_SHORT = 80


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Returns a bar whose length shows `share` (0 to 1) of `width` characters."""
    return "█" * max(round(share * width), 1)


def heading(text: str) -> Line:
    """Returns the title of a section."""
    return Line(text, "strong")


def wrapped(text: str, indent: str = "") -> list[str]:
    """Returns a list with the paragraph `indent` + `text`; an empty list for an empty text."""
    return [f"{indent}{text}"] if text else []


def listed(title: str, items: Iterable[str]) -> Iterator[str]:
    """Yields a list with a title, after an empty line; nothing without items."""
    lines = [f"  - {item}" for item in items if item]
    if lines:
        yield from ("", title, *lines)


def code_lines(code: str, indent: str = "       ") -> Iterator[Line]:
    """Yields the lines of `code`. The lines of a patch are never broken."""
    style = "verbatim" if code.startswith("--- ") else "code"
    yield from (Line(f"{indent}{line}", style) for line in code.splitlines())


def fix_lines(code: str) -> Iterator[Line]:
    """Yields the lines of `code`, the fix of a defect of a recording, after "fix:". The comment of a long line follows
    it, because above it would separate the defect from its fix."""
    for number, line in enumerate(code.splitlines()):
        indent = "           " if number else "      fix: "
        comment = _COMMENT.fullmatch(line) if len(indent + line) > _SHORT else None
        yield Line(f"{indent}{comment[1] if comment else line}", "code")
        if comment:
            yield Line(f"           {comment[2]}", "code")
