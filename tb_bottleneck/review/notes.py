"""The notes of reviewers, each stored as one line of JSON, and the review of each recording: the merged notes about it.

Lines are untrusted, because other people wrote them. The latest note that sets a state counts; all comments are kept.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from tb_bottleneck.base.units import one_line
from tb_bottleneck.schema import review_pb2 as pb
from tb_bottleneck.sources.logdir import RecordingFile

MAX_TEXT = 2_000  # characters of a reason or comment
MAX_NAME = 4_096  # characters; the longest path of Linux
MAX_LINE_BYTES = 64 << 10  # the texts and names above, with every character escaped as \uXXXX
LAST_NS = 1 << 62  # ns since 1970: in the year 2116


class Action(str, Enum):
    """What a note does. The value is written to the file. TRIED is a note about a measurement by `tb-bottleneck
    try`."""

    ACCEPT = "accept"
    FIXED = "fixed"
    REOPEN = "reopen"
    COMMENT = "comment"
    TRIED = "tried"


_RETIRED = {"own": "owner:", "baseline": "baseline of"}
"""Actions of version 1.0.0 that no longer exist. Their notes are read as comments that begin with these words."""

STATE_OF = {Action.ACCEPT: "accepted", Action.FIXED: "fixed", Action.REOPEN: "open"}
"""The state of a finding that each action sets. Other actions set no state."""


@dataclass(frozen=True)
class Note:
    """One statement about `subject`, which is the name of a run or of one recording.

    Names are relative to the logdir: RUN, or RUN/SOURCE for one recording of a run. `fixed_in` names the run with the
    fix or with the tried change; it is empty for other actions.
    """

    id: str  # random; two notes never have the same id
    time_ns: int  # since 1970
    writer: str  # as the reviewer stated it
    action: Action
    subject: str
    cause: str = ""  # of the finding; empty for the subject as a whole
    text: str = ""  # the reason, the comment, or what was measured
    fixed_in: str = ""

    @property
    def order(self) -> tuple[int, str]:
        """The sort key (time in ns, id) for merging the notes of all writers."""
        return self.time_ns, self.id


def clean(text: str, longest: int = MAX_TEXT) -> str:
    """Returns `text` as one line without control characters and repeated spaces, cut off after `longest` characters."""
    return one_line(" ".join(one_line(text).split()), longest)


def line_of(note: Note) -> bytes:
    """Returns the note as a line of JSON that ends with a line break. Empty fields are left out."""
    return json.dumps({name: value for name, value in asdict(note).items() if value != ""}).encode() + b"\n"


def parse(line: bytes) -> Note:
    """Returns the note that `line`, a line of JSON, contains. Unknown fields are ignored. Texts are cleaned and
    shortened.

    Raises:
        ValueError: the line is not a valid note.
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
    action, text = _text(values, "action", required=True), clean(_text(values, "text"))
    if action in _RETIRED:
        action, text = Action.COMMENT.value, f"{_RETIRED[action]} {text}".strip()
    return Note(
        id=_text(values, "id", required=True),
        time_ns=time_ns,
        writer=clean(_text(values, "writer", required=True)),
        action=Action(action),
        subject=_text(values, "subject", required=True),
        cause=clean(_text(values, "cause")),
        text=text,
        fixed_in=_text(values, "fixed_in"),
    )


def _text(values: Mapping[str, Any], name: str, required: bool = False) -> str:
    """Returns the field `name` of `values`; "" if it is absent. Raises ValueError if it is not a text, is too long, is
    empty although it is `required`, or cannot be encoded as UTF-8."""
    value = values.get(name, "")
    if not isinstance(value, str) or len(value) > MAX_NAME or (required and not value):
        raise ValueError(f"no {name}")
    value.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate: messages refuse it
    return value


SHOWN_COMMENTS = 10  # latest comments of a recording, and of each finding, in the list of recordings


def names_of(recording: RecordingFile) -> tuple[str, str]:
    """Returns the two names by which notes may refer to `recording`: the name of its run, and its own name."""
    in_logdir = recording.run in (".", "")
    return recording.run or ".", recording.source if in_logdir else f"{recording.run}/{recording.source}"


def by_name(recordings: Iterable[RecordingFile]) -> dict[str, RecordingFile]:
    """Returns a dict from the names by which notes refer to recordings (see names_of) to the recordings. The name of a
    run maps to its first trace or, if it has no traces, to its first other recording."""
    named: dict[str, RecordingFile] = {}
    for recording in sorted(recordings, key=lambda recording: not recording.is_trace):
        for name in names_of(recording):
            named.setdefault(name, recording)
    return named


def reviews_of(
    notes: Sequence[Note], recordings: Sequence[RecordingFile], comments: int | None = SHOWN_COMMENTS
) -> dict[RecordingFile, pb.Review]:
    """Returns the review of every recording that a note is about.

    `notes` are in order of time. Of each finding, the latest `comments` comments are included; None means all of them.
    """
    about: defaultdict[str, list[Note]] = defaultdict(list)
    for note in notes:
        about[note.subject].append(note)
    reviews = {}
    for recording in recordings:
        own = sorted((note for name in names_of(recording) for note in about[name]), key=lambda note: note.order)
        if own:
            causes = dict.fromkeys(["", *(note.cause for note in own)])
            reviews[recording] = pb.Review(states=[_state(cause, own, comments) for cause in causes])
    return reviews


def state_of(review: pb.Review, cause: str) -> pb.ReviewState:
    """Returns the state of the finding with the cause `cause` in `review`. If no note names this finding, returns the
    state of the recording as a whole; if there is none either, a state "open"."""
    states = {state.cause: state for state in review.states}
    return states.get(cause) or states.get("") or pb.ReviewState(state="open")


def together(reviews: Iterable[pb.Review]) -> pb.Review:
    """Returns the review of a training, merged from the reviews of its recordings.

    For each cause, the first state that a reviewer set counts; `reviews` are in the order of the recordings.
    """
    states = [state for review in reviews for state in review.states]
    chosen: dict[str, pb.ReviewState] = {}
    for state in sorted(states, key=lambda state: not _was_set(state)):  # stable: the order of the recordings
        chosen.setdefault(state.cause, state)
    return pb.Review(states=chosen.values())


def _was_set(state: pb.ReviewState) -> bool:
    """Returns True if `state` is more than the default: a reviewer set the state or wrote a comment, or there is
    a trial."""
    return bool(state.state != "open" or state.by or state.comments or state.trial)


def _state(cause: str, notes: Iterable[Note], comments: int | None) -> pb.ReviewState:
    """Returns the state of the finding with the cause `cause`, or of the recording as a whole if `cause` is empty. A
    note about the recording as a whole also sets the state of its findings.

    `notes` are those about the recording, in order of time. The latest `comments` comments are included; None means all
    of them.
    """
    state = pb.ReviewState(cause=cause, state="open")
    for note in notes:
        if note.cause not in ("", cause):
            continue
        if note.action in STATE_OF:
            state.state, state.by = STATE_OF[note.action], note.writer
            state.reason, state.fixed_in = note.text, note.fixed_in
        elif note.action is Action.TRIED and note.cause == cause:
            state.trial = note.text
        elif note.action is Action.COMMENT and note.cause == cause:
            state.comments.add(by=note.writer, unix_ns=note.time_ns, text=note.text)
    if comments is not None:
        state.earlier_comments = max(len(state.comments) - comments, 0)
        del state.comments[: state.earlier_comments]
    return state
