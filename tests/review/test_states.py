"""Tests of the merged review of recordings."""

from tb_bottleneck.review.notes import Action, Note, reviews_of, state_of, together
from tb_bottleneck.schema import review_pb2 as pb
from tb_bottleneck.sources.logdir import RecordingFile


def recording(run, source="t.pt.trace.json"):
    return RecordingFile(f"/logs/{run}/{source}", run, source, 1, 1)


SLOW, OTHER, TOP = recording("resnet/slow"), recording("bert"), recording(".")
EVENTS = recording("resnet/slow", "events.out.tfevents.1")


def notes(*rows):
    return [Note(str(time), time, "Ana", *row) for time, row in enumerate(rows)]


def states(review):
    return {state.cause: (state.state, state.reason, state.fixed_in) for state in review.states}


def test_the_latest_note_decides_and_a_note_about_the_run_is_about_its_findings_too():
    found = reviews_of(
        notes(
            (Action.ACCEPT, "resnet/slow", "sync", "debugging"),
            (Action.FIXED, "resnet/slow/t.pt.trace.json", "loader", "", "bert"),
            (Action.REOPEN, "resnet/slow", "sync", "slow again"),
        ),
        [SLOW, EVENTS, OTHER],
    )
    assert found.keys() == {SLOW, EVENTS}
    assert states(found[SLOW]) == {
        "": ("open", "", ""),
        "sync": ("open", "slow again", ""),
        "loader": ("fixed", "", "bert"),
    }
    assert "loader" not in states(found[EVENTS]), "the note names one recording of the run"


def test_comments_are_kept_in_order_and_belong_to_what_they_name():
    written = notes(*((Action.COMMENT, "bert", "sync" if number % 2 else "", f"{number}") for number in range(50)))
    whole, sync = reviews_of(written, [OTHER])[OTHER].states
    assert [comment.text for comment in whole.comments] == [str(number) for number in range(30, 50, 2)]
    assert [comment.text for comment in sync.comments] == [str(number) for number in range(31, 50, 2)]
    assert whole.earlier_comments == sync.earlier_comments == 15
    whole, sync = reviews_of(written, [OTHER], comments=None)[OTHER].states
    assert (len(whole.comments), len(sync.comments), sync.earlier_comments) == (25, 25, 0)


def test_the_review_of_a_training_has_what_was_stated_about_any_of_its_recordings():
    untouched = pb.ReviewState(state="open")
    accepted = pb.ReviewState(cause="checkpointing", state="accepted", by="Ana")
    commented = pb.ReviewState(state="open", comments=[pb.ReviewComment(by="Ben", text="x")])
    trace = pb.Review(states=[untouched, accepted])
    telemetry = pb.Review(states=[commented, pb.ReviewState(cause="checkpointing", state="open")])
    found = together([trace, telemetry])
    assert (state_of(found, "checkpointing").by, state_of(found, "").comments[0].by) == ("Ana", "Ben")
    assert state_of(together([]), "checkpointing").state == "open"
