"""A note: one statement of one reviewer, as a line of JSON. Lines are untrusted: others wrote them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from tb_bottleneck.base.text import one_line

MAX_TEXT = 2_000  # characters of a reason or comment
MAX_NAME = 4_096  # characters; the longest path of Linux
MAX_LINE_BYTES = 64 << 10  # the texts and names above, with every character escaped as \uXXXX
LAST_NS = 1 << 62  # ns since 1970: in the year 2116


class Action(str, Enum):
    """What a note does. The value is written to the file. TRIED is what `tb-bottleneck try` measured."""

    ACCEPT = "accept"
    FIXED = "fixed"
    REOPEN = "reopen"
    COMMENT = "comment"
    OWN = "own"
    BASELINE = "baseline"
    TRIED = "tried"


STATE_OF = {Action.ACCEPT: "accepted", Action.FIXED: "fixed", Action.REOPEN: "open"}
"""The state of a finding that each action sets. Other actions set no state."""


@dataclass(frozen=True)
class Note:
    """One statement about `subject`: a run or one recording, for BASELINE the baseline.

    Names are relative to the logdir: RUN, or RUN/SOURCE for one recording of a run. `fixed_in` names the run with the
    fix or with the tried change; it is empty for other actions.
    """

    id: str  # random; two notes never have the same one
    time_ns: int  # since 1970
    writer: str  # as the reviewer stated it
    action: Action
    subject: str
    cause: str = ""  # of the finding; empty for the subject as a whole
    text: str = ""  # the reason, the comment, the owner, what was measured, or the folder that has the baseline
    fixed_in: str = ""

    @property
    def order(self) -> tuple[int, str]:
        """The sort key (time in ns, id) for merging the notes of all writers."""
        return self.time_ns, self.id


def clean(text: str, longest: int = MAX_TEXT) -> str:
    """Returns `text` as one line without control characters, cut off after `longest` characters."""
    return one_line(" ".join(one_line(text).split()), longest)


def line_of(note: Note) -> bytes:
    """Returns the note as a line of JSON."""
    return json.dumps({name: value for name, value in asdict(note).items() if value != ""}).encode() + b"\n"


def parse(line: bytes) -> Note:
    """Returns the note of a line. Unknown fields are ignored.

    Raises:
        ValueError: the line is not a note.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError("too long")
    try:
        values = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError("not an object")
    time_ns = values.get("time_ns")
    if type(time_ns) is not int or not 0 <= time_ns <= LAST_NS:
        raise ValueError("no time")
    return Note(
        id=_text(values, "id", required=True),
        time_ns=time_ns,
        writer=clean(_text(values, "writer", required=True)),
        action=Action(_text(values, "action", required=True)),
        subject=_text(values, "subject", required=True),
        cause=clean(_text(values, "cause")),
        text=clean(_text(values, "text")),
        fixed_in=_text(values, "fixed_in"),
    )


def _text(values: Mapping[str, Any], name: str, required: bool = False) -> str:
    """Returns a field that UTF-8 can encode. Raises ValueError."""
    value = values.get(name, "")
    if not isinstance(value, str) or len(value) > MAX_NAME or (required and not value):
        raise ValueError(f"no {name}")
    value.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate: messages refuse it
    return value
