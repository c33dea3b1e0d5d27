"""The rows of the doctor's table, and the table as text and as JSON."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from tb_bottleneck.report.rendering.layout import Layout

WORKS, LIMITED, FAILS = "works", "works with limits", "does not work"
ABSENT, UNKNOWN = "not present", "cannot tell"

JSON_SCHEMA = 1
MAX_WIDTH = 120
"""Largest number of characters of a line. Longer lines are hard to read."""
_STYLES = {WORKS: "none", LIMITED: "warning", FAILS: "critical", ABSENT: "faint", UNKNOWN: "info"}
_HEADERS = ("Check", "Result", "Measured")


@dataclass(frozen=True)
class Row:
    """A row of the doctor's table: the result of one check. `measured` has the figures of both sources if there are
    two. `fix` may be empty.

    The texts contain no names of hosts or users, and no paths."""

    check: str
    result: str
    measured: str
    fix: str = ""


@dataclass(frozen=True)
class Examination:
    """The result of all checks: the rows, the versions of what was examined, whether torch is installed, and the
    duration in seconds."""

    rows: tuple[Row, ...]
    versions: Mapping[str, str]
    has_torch: bool
    seconds: float

    @property
    def status(self) -> int:
        """The exit status: 2 without torch; otherwise 1 if a row says `does not work`, and 0 if none does."""
        return 2 if not self.has_torch else int(any(row.result == FAILS for row in self.rows))


def as_json(examination: Examination) -> dict[str, object]:
    """Returns the examination as a dict that can be written as JSON."""
    return {
        "schema": JSON_SCHEMA,
        "versions": dict(examination.versions),
        "checks": [asdict(row) for row in examination.rows],
        "seconds": round(examination.seconds, 1),
        "status": examination.status,
    }


def as_text(examination: Examination, layout: Layout) -> str:
    """Returns the table for a terminal, with the versions above the table and a sentence below it."""
    counts = {result: sum(row.result == result for row in examination.rows) for result in _STYLES}
    known = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    versions = ", ".join(f"{name} {version}" for name, version in examination.versions.items())
    lines = [*textwrap.wrap(versions, min(layout.width, MAX_WIDTH)), ""]
    lines += [*_table(examination.rows, layout), "", f"{known} ({examination.seconds:.0f} s)"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _table(rows: Sequence[Row], layout: Layout) -> Iterator[str]:
    """Yields the lines of the table. The fix of a row is in the line below, in the column of the figures."""
    first = max(len(text) for text in (_HEADERS[0], *(row.check for row in rows)))
    second = max(len(text) for text in (_HEADERS[1], *(row.result for row in rows)))
    indent = " " * (first + second + 4)
    room = max(min(layout.width, MAX_WIDTH) - len(indent), 24)
    yield layout.styled_text(f"{_HEADERS[0]:{first}}  {_HEADERS[1]:{second}}  {_HEADERS[2]}", "strong")
    for row in rows:
        lines = _wrapped(row.measured, room)
        result = layout.styled_text(f"{row.result:{second}}", _STYLES[row.result])
        yield f"{row.check:{first}}  {result}  {lines[0]}"
        fix = _wrapped(f"Fix: {row.fix}", room) if row.fix else []
        yield from (f"{indent}{line}" for line in [*lines[1:], *fix])


def _wrapped(text: str, width: int) -> list[str]:
    """Splits `text` into lines of at most `width`. Returns at least one line. A number and its unit stay together."""
    kept = re.sub(r"(?<=\d) (?=\S)", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(kept, width, break_on_hyphens=False) or [""]
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
