"""The review of each recording: the notes about it, merged. The latest note decides; comments are all kept."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tb_bottleneck.review.notes import STATE_OF, Action, Note
from tb_bottleneck.schema import review_pb2 as pb
from tb_bottleneck.sources.logdir import RecordingFile

SHOWN_COMMENTS = 10  # the latest ones of a recording, and of each finding; the list of recordings contains them


def names_of(recording: RecordingFile) -> tuple[str, str]:
    """Returns the two names by which notes may refer to `recording`: the name of its run, and its own name."""
    in_logdir = recording.run in (".", "")
    return recording.run or ".", recording.source if in_logdir else f"{recording.run}/{recording.source}"


def by_name(recordings: Iterable[RecordingFile]) -> dict[str, RecordingFile]:
    """Returns a dict from names to recordings. A run's name gives its first trace or, without traces, its telemetry."""
    named: dict[str, RecordingFile] = {}
    for recording in sorted(recordings, key=lambda recording: not recording.is_trace):
        for name in names_of(recording):
            named.setdefault(name, recording)
    return named


def reviews_of(
    notes: Sequence[Note], recordings: Sequence[RecordingFile], comments: int | None = SHOWN_COMMENTS
) -> dict[RecordingFile, pb.Review]:
    """Returns the review of every recording that a note is about or that has a baseline.

    `notes` are in order of time. Each state keeps its latest `comments` comments; None keeps all of them.
    """
    about: defaultdict[str, list[Note]] = defaultdict(list)
    for note in notes:
        about[note.subject].append(note)
    pinned = {note.text: note.subject for note in notes if note.action is Action.BASELINE}
    named = by_name(recordings) if pinned else {}
    reviews = {}
    for recording in recordings:
        own = sorted((note for name in names_of(recording) for note in about[name]), key=lambda note: note.order)
        group = _group_of(recording.run, pinned)
        baseline = None if group is None else named.get(pinned[group])
        if own or baseline is not None:
            causes = dict.fromkeys(["", *(note.cause for note in own)])
            review = pb.Review(states=[_state(cause, own, comments) for cause in causes])
            if baseline is not None and group is not None:
                review.baseline, review.group = f"{baseline.run}/{baseline.source}", group
            reviews[recording] = review
    return reviews


def state_of(review: pb.Review, cause: str) -> pb.ReviewState:
    """Returns the state of the finding `cause` in `review`; else the state of the recording; else a state "open"."""
    states = {state.cause: state for state in review.states}
    return states.get(cause) or states.get("") or pb.ReviewState(state="open")


def together(reviews: Iterable[pb.Review]) -> pb.Review:
    """Returns the review of a training from those of its recordings.

    For each cause, the first state that somebody set counts. Of the baselines, the first one counts.
    """
    given = list(reviews)
    states = [state for review in given for state in review.states]
    chosen: dict[str, pb.ReviewState] = {}
    for state in sorted(states, key=lambda state: not _was_set(state)):  # stable: the order of the recordings
        chosen.setdefault(state.cause, state)
    pinned = next((review for review in given if review.baseline), pb.Review())
    return pb.Review(states=chosen.values(), baseline=pinned.baseline, group=pinned.group)


def _was_set(state: pb.ReviewState) -> bool:
    return bool(state.state != "open" or state.by or state.owner or state.comments or state.trial)


def _group_of(run: str, groups: Mapping[str, str]) -> str | None:
    """Returns the innermost folder with a baseline that the run is in or is; "." contains every run."""
    parts = run.split("/")
    folders = ("/".join(parts[:depth]) for depth in range(len(parts), 0, -1))
    return next((folder for folder in (*folders, ".") if folder in groups), None)


def _state(cause: str, notes: Iterable[Note], comments: int | None) -> pb.ReviewState:
    """Returns the state of a finding, or of the recording if the cause is empty. A note about the recording as a whole
    also sets the state and the owner of its findings."""
    state = pb.ReviewState(cause=cause, state="open")
    for note in notes:
        if note.cause not in ("", cause):
            continue
        if note.action in STATE_OF:
            state.state, state.by = STATE_OF[note.action], note.writer
            state.reason, state.fixed_in = note.text, note.fixed_in
        elif note.action is Action.OWN:
            state.owner = note.text
        elif note.action is Action.TRIED and note.cause == cause:
            state.trial = note.text
        elif note.action is Action.COMMENT and note.cause == cause:
            state.comments.add(by=note.writer, unix_ns=note.time_ns, text=note.text)
    if comments is not None:
        state.earlier_comments = max(len(state.comments) - comments, 0)
        del state.comments[: state.earlier_comments]
    return state
