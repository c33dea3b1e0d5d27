"""The rows of the doctor's table, and the table as text and as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tb_bottleneck.text.document import Line, Table
from tb_bottleneck.text.terminal import Layout

WORKS, LIMITED, FAILS = "works", "works with limits", "does not work"
ABSENT, UNKNOWN = "not present", "cannot tell"

JSON_SCHEMA = 1
_STYLES = {WORKS: "none", LIMITED: "warning", FAILS: "critical", ABSENT: "faint", UNKNOWN: "info"}


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
    """Returns the table for a terminal, with the versions above the table and a sentence below it. The fix of a row is
    below its figures."""
    counts = {result: sum(row.result == result for row in examination.rows) for result in _STYLES}
    known = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    versions = ", ".join(f"{name} {version}" for name, version in examination.versions.items())
    rows = [
        (
            row.check,
            Line(row.result, _STYLES[row.result]),
            f"{row.measured}\nFix: {row.fix}" if row.fix else row.measured,
        )
        for row in examination.rows
    ]
    table = Table("<<<", rows, header=("Check", "Result", "Measured"), indent=0, wraps=True)
    return layout.text([versions, "", table, "", f"{known} ({examination.seconds:.0f} s)"])
