"""Tests of the order of questions, cached replies, progress, and failures that cost one question only.

Clients take turns, questions about one trace follow each other, and the process that has it in memory answers.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tb_bottleneck.plugin.workers import question_queue
from tb_bottleneck.plugin.workers import question_queue as module
from tb_bottleneck.plugin.workers.analysis_queue import WAITING, AnalysisState
from tb_bottleneck.plugin.workers.question_queue import MAX_PER_CLIENT, WAITING_LIMIT, QuestionQueue, QuestionSchedule
from tb_bottleneck.plugin.workers.questions import (
    ComparedRecording,
    CompareQuestion,
    RecordingQuestion,
    TimelineQuestion,
    TraceFile,
    paths_of,
)
from tb_bottleneck.workers.ipc import Refusal, WorkerFailure, WorkerLimits
from tests.plugin.tenant import until


def about(*paths: str) -> RecordingQuestion:
    traces = [TraceFile(path, path, 1, 1) for path in paths]
    if len(traces) == 1:
        return TimelineQuestion(traces[0])
    return CompareQuestion(*(ComparedRecording(trace.path, trace) for trace in traces))


def schedule(*questions: tuple[str, RecordingQuestion]) -> QuestionSchedule:
    waiting = QuestionSchedule()
    for client, question in questions:
        waiting.add(question, client)
    return waiting


def served(waiting: QuestionSchedule, slot: int) -> RecordingQuestion | None:
    question = waiting.next(slot, {slot})
    if question is not None:
        waiting.start(question, slot)
    return question


def test_a_question_is_about_the_traces_in_any_of_its_fields() -> None:
    assert paths_of(about("a")) == {"a"}
    assert paths_of(about("a", "b")) == {"a", "b"}


def test_clients_take_turns_and_the_newest_question_of_each_goes_first() -> None:
    waiting = schedule(*(("busy", about(f"a{number}")) for number in range(9)), ("other", about("b")))
    first, second = served(waiting, 1), served(waiting, 2)
    assert (first, second) == (about("a8"), about("b"))
    for question in (first, second):
        waiting.end(question)
    waiting.add(about("c"), "other")
    assert served(waiting, 1) == about("a7")


def test_a_client_leaves_a_process_to_the_others() -> None:
    waiting = schedule(*(("busy", about(f"a{number}")) for number in range(9)))
    for slot in range(MAX_PER_CLIENT):
        assert served(waiting, slot) is not None
    assert served(waiting, 8) is None
    waiting.add(about("b"), "other")
    assert served(waiting, 8) == about("b")


def test_the_client_with_most_questions_loses_the_oldest_one() -> None:
    waiting = schedule(("other", about("b")), *(("busy", about(f"a{number}")) for number in range(WAITING_LIMIT)))
    assert len(waiting.waiting) == WAITING_LIMIT
    assert about("b") in waiting.waiting
    assert about("a0") not in waiting.waiting


def test_a_trace_is_read_by_one_process_at_a_time() -> None:
    waiting = schedule(("a", about("slow")), ("b", about("slow", "x")), ("c", about("slow", "y")), ("d", about("z")))
    assert served(waiting, 1) == about("slow")
    assert served(waiting, 2) == about("z")
    assert served(waiting, 3) is None


def test_the_process_that_has_the_trace_goes_first_if_it_is_free() -> None:
    waiting = schedule(("a", about("x")))
    served(waiting, 1)
    waiting.end(about("x"))
    waiting.add(about("x", "y"), "a")
    assert waiting.next(2, {1, 2}) is None
    assert waiting.next(1, {1, 2}) == about("x", "y")
    assert waiting.next(2, {2}) == about("x", "y")  # the first one has another question
    waiting.forget(1)
    assert waiting.next(2, {1, 2}) == about("x", "y")


PATIENCE = 20.0


@pytest.fixture
def questions() -> Iterator[QuestionQueue]:
    with closing(QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits(idle_seconds=20.0))) as queue:
        yield queue


def ask(
    questions: QuestionQueue, id_: str = "0", path: str = "", patience: float = PATIENCE, client: str = ""
) -> object:
    return questions.ask(TimelineQuestion(TraceFile(id_, path, 1, 2)), client, patience)


def ids(questions: dict[RecordingQuestion, object]) -> list[str]:
    return [question.trace.id for question in questions if isinstance(question, TimelineQuestion)]


def test_a_question_is_answered_by_another_process_and_asked_once(questions: QuestionQueue) -> None:
    first = ask(questions)
    assert isinstance(first, bytes)
    name, pid = first.decode().split()
    assert name == "0"
    assert int(pid) != os.getpid()
    assert ask(questions) is first
    other = ask(questions, "1")
    assert isinstance(other, bytes)
    assert other.decode().split()[1] == pid, "the process stays, with the traces that it has read"


@pytest.mark.parametrize(("id_", "detail"), [("raise", "RuntimeError: a defect"), ("exit", "exit status 3")])
def test_a_failure_costs_its_own_question_and_is_tried_again_later(
    questions: QuestionQueue, monkeypatch: pytest.MonkeyPatch, id_: str, detail: str
) -> None:
    failure = ask(questions, id_)
    assert isinstance(failure, WorkerFailure)
    assert detail in failure.detail
    assert ask(questions, id_) is failure
    assert isinstance(ask(questions), bytes)
    monkeypatch.setattr(module, "FAILURE_SECONDS", 0.0)
    again = ask(questions, id_)
    assert isinstance(again, WorkerFailure)
    assert again is not failure


def test_an_exception_is_logged_with_its_traceback(questions: QuestionQueue, capfd: pytest.CaptureFixture[str]) -> None:
    """An exception became "RuntimeError: a defect", and nothing said where it was raised."""
    assert isinstance(ask(questions, "raise"), WorkerFailure)
    log = capfd.readouterr().err
    assert "could not be handled" in log
    assert "Traceback (most recent call last)" in log
    assert 'raise RuntimeError("a defect")' in log


def test_a_refusal_is_a_sentence_and_the_process_stays(
    questions: QuestionQueue, capfd: pytest.CaptureFixture[str]
) -> None:
    before = ask(questions)
    assert ask(questions, "refuse") == Refusal("No such device.")
    after = ask(questions, "1")
    assert isinstance(before, bytes)
    assert isinstance(after, bytes)
    assert before.split()[1] == after.split()[1]
    assert capfd.readouterr().err == ""


def test_a_question_that_is_not_answered_in_time_returns_its_progress(questions: QuestionQueue, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    state = until(
        lambda: ask(questions, "gate", gate, patience=0.05),
        lambda reply: isinstance(reply, AnalysisState) and reply.progress == 0.25,
    )
    assert state == AnalysisState("analysing", 0.25)
    assert ask(questions, "7", gate, patience=0.0) == WAITING
    Path(gate).write_bytes(b"")
    assert isinstance(ask(questions, "gate", gate), bytes)
    assert isinstance(ask(questions, "7", gate), bytes)


def test_the_newest_question_goes_first_and_the_oldest_are_dropped(
    questions: QuestionQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_queue, "WAITING_LIMIT", 2)
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    ask(questions, "gate", gate, patience=0.5)
    for number in (1, 2, 3):
        ask(questions, f"{number}", gate, patience=0.0)
    assert ids(questions._schedule.waiting) == ["2", "3"]
    Path(gate).write_bytes(b"")
    until(lambda: len(questions._replies), lambda count: count == 3)
    assert ids(questions._replies) == ["gate", "3", "2"]


def test_replies_are_kept_up_to_a_number_of_bytes(questions: QuestionQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPLY_BYTES", 40)
    for number in range(6):
        ask(questions, f"{number}")
    assert sum(map(len, (reply for reply in questions._replies.values() if isinstance(reply, bytes)))) <= 40
    assert ids(questions._replies)[-1] == "5"


def test_long_questions_count_too(questions: QuestionQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only replies were counted: a million short ones, each to another question, would have filled the memory."""
    monkeypatch.setattr(module, "REPLY_BYTES", 3 * module.BYTES_PER_REPLY + 700)
    for number in range(4):
        ask(questions, f"{number}")
    assert ids(questions._replies) == ["1", "2", "3"]
    ask(questions, "4", path="x" * module.BYTES_PER_REPLY)
    assert ids(questions._replies) == ["3", "4"]
    assert questions._bytes <= module.REPLY_BYTES


def test_the_process_ends_when_no_question_came_for_a_while_and_starts_again() -> None:
    with closing(QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits(idle_seconds=0.05))) as questions:
        assert isinstance(ask(questions), bytes)
        until(lambda: len(questions._slots), lambda slots: slots == 0)
        assert isinstance(ask(questions, "1"), bytes)


def test_closing_ends_the_wait_of_a_request(tmp_path: Path) -> None:
    questions = QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits())
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    replies: list[object] = []
    thread = threading.Thread(target=lambda: replies.append(ask(questions, "gate", gate)))
    thread.start()
    until(lambda: len(questions._progress), lambda running: running == 1)
    questions.close()
    thread.join()
    assert isinstance(replies[0], AnalysisState | WorkerFailure)
    assert not any(thread.is_alive() for thread in questions._slots)


def test_a_question_that_hangs_delays_no_other_recording(questions: QuestionQueue, tmp_path: Path) -> None:
    gates = [str(tmp_path / name) for name in ("a", "b", "c")]
    for gate in gates:
        os.mkfifo(gate)
        assert isinstance(ask(questions, "gate", gate, patience=0.1, client="one"), AnalysisState)
    until(lambda: len(questions._progress), lambda running: running == question_queue.MAX_PER_CLIENT)
    assert isinstance(ask(questions, "7", "other", client="two"), bytes)
    assert len(questions._slots) == module.PROCESSES


def test_a_question_that_nobody_asks_any_more_is_ended(
    questions: QuestionQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ABANDONED_SECONDS", 0.2)
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    ask(questions, "gate", gate, patience=0.0)
    until(lambda: len(questions._progress), lambda running: running == 1)
    ask(questions, "later", gate, patience=0.0)

    def others_still_ask() -> object:
        assert isinstance(ask(questions, "7", "other"), bytes)
        return dict(questions._progress)

    until(others_still_ask, lambda running: not running)
    assert not questions._schedule.waiting
    assert not questions._interest
    assert isinstance(ask(questions, "8", gate), bytes)


def test_a_question_that_is_asked_again_while_it_is_ended_is_answered(
    questions: QuestionQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ABANDONED_SECONDS", 0.0)
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    ask(questions, "gate", gate, patience=0.0)
    until(lambda: len(questions._progress), lambda running: running == 1)
    ask(questions, "7", "other", patience=0.0)  # ends the first question
    monkeypatch.setattr(module, "ABANDONED_SECONDS", 60.0)
    thread = threading.Thread(target=Path(gate).write_bytes, args=(b"",))
    thread.start()
    assert isinstance(ask(questions, "gate", gate), bytes)
    thread.join()
