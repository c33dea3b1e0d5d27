"""Fits lines of text into a terminal: wrapped to its width, without control characters, and with styles if the terminal
supports them."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tb_bottleneck.base.untrusted_text import one_line

# Longer lines of prose are hard to read.
MAX_PROSE = 100
# Codes of "select graphic rendition" (ECMA-48, 8.3.117).
_CODES = {"strong": "1", "faint": "2", "critical": "1;31", "warning": "33", "info": "36", "none": "32"}
_COMMENT = re.compile(r"(.*\S)\s{2,}(# .*)")
_FIRST_WORDS = re.compile(r"\s*[^:,.]+")


class Line(str):
    """A line of text with a style: `strong`, `faint`, `code`, `rule`, or a severity, which colours the first words of
    the line."""

    __slots__ = ("style",)
    style: str

    def __new__(cls, text: str, style: str) -> "Line":
        """Returns a Line with the text `text` and the style `style`."""
        line = super().__new__(cls, text)
        line.style = style
        return line


def wrapped(text: str, indent: str = "") -> list[str]:
    """Returns a list with the paragraph `indent` + `text` as one line, which the layout wraps later; an empty list for
    an empty text."""
    return [f"{indent}{text}"] if text else []


RULE = Line("─" * 72, "rule")
_SHORT = 80


def fix_lines(code: str) -> Iterator[Line]:
    """Yields the lines of `code`, the fix of a defect of a recording, after "fix:". The comment of a long line follows
    it, because above it would separate the defect from its fix."""
    for number, line in enumerate(code.splitlines()):
        indent = "           " if number else "      fix: "
        comment = _COMMENT.fullmatch(line) if len(indent + line) > _SHORT else None
        yield Line(f"{indent}{comment[1] if comment else line}", "code")
        if comment:
            yield Line(f"           {comment[2]}", "code")


@dataclass(frozen=True)
class Layout:
    """How text is fitted into a terminal. `width` is in characters. If `styled` is True, escape codes for styles are
    written."""

    width: int = MAX_PROSE
    styled: bool = False

    def text(self, lines: Iterable[str]) -> str:
        """Returns `lines` as one text: wrapped to the width, with one newline at the end."""
        return "\n".join(part for line in lines for part in self._parts(line)).rstrip() + "\n"

    def styled_text(self, text: str, style: str) -> str:
        """Returns `text` between the escape codes of `style`; unchanged if this layout or style has no codes."""
        code = _CODES.get(style) if self.styled else None
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def _parts(self, line: str) -> Iterator[str]:
        style = line.style if isinstance(line, Line) else ""
        clean = one_line(line)
        width = min(self.width, MAX_PROSE)
        if style == "rule":
            yield clean[:width]
        elif style == "code":
            yield from _fitted_code(clean, width)
        elif style in ("strong", "faint"):
            yield from (self.styled_text(part, style) for part in _parts_of(clean, width))
        else:
            first, *more = _parts_of(clean, width)
            words = _FIRST_WORDS.match(first) if style else None
            end = words.end() if words else 0
            yield self.styled_text(first[:end], style) + first[end:]
            yield from more


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
    comment = _COMMENT.fullmatch(line) if len(line) > width else None
    if comment:
        line = comment[1]
        yield from textwrap.wrap(comment[2], width, initial_indent=indent, subsequent_indent=f"{indent}# ")
    while len(line) > width and (end := line.rfind(", ", len(indent), width)) > 0:
        yield line[: end + 1]
        indent = indent if line.startswith(f"{indent}    ") else f"{indent}    "
        line = f"{indent}{line[end + 2 :]}"
    yield line
