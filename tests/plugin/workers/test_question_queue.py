"""Questions to a process of their own: replies are kept, the newest goes first, an illness costs its own question."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tb_bottleneck.plugin.workers import question_queue as module
from tb_bottleneck.plugin.workers.failures import WorkerFailure
from tb_bottleneck.plugin.workers.question_queue import Pending, QuestionQueue
from tb_bottleneck.plugin.workers.worker_limits import WorkerLimits
from tests.plugin.tenant import until

PATIENCE = 20.0


@pytest.fixture
def questions() -> Iterator[QuestionQueue]:
    with closing(QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits(idle_seconds=20.0))) as made:
        yield made


def asked(
    questions: QuestionQueue, ask: str = "this", number: int = 0, path: str = "", patience: float = PATIENCE
) -> object:
    return questions.ask({"ask": ask, "id": f"{number}", "path": path}, patience)


def test_a_question_is_answered_by_another_process_and_asked_once(questions: QuestionQueue) -> None:
    first = asked(questions)
    assert isinstance(first, bytes)
    name, pid, ask = first.decode().split()
    assert (name, ask) == ("0", "this")
    assert int(pid) != os.getpid()
    assert asked(questions) is first
    other = asked(questions, number=1)
    assert isinstance(other, bytes)
    assert other.decode().split()[1] == pid, "the process stays, with what it has read"


@pytest.mark.parametrize(("ask", "detail"), [("raise", "RuntimeError: a defect"), ("exit", "exit status 3")])
def test_an_illness_costs_its_own_question_and_is_tried_again_later(
    questions: QuestionQueue, monkeypatch: pytest.MonkeyPatch, ask: str, detail: str
) -> None:
    failure = asked(questions, ask)
    assert isinstance(failure, WorkerFailure)
    assert detail in failure.detail
    assert asked(questions, ask) is failure
    assert isinstance(asked(questions), bytes)
    monkeypatch.setattr(module, "FAILURE_SECONDS", 0.0)
    again = asked(questions, ask)
    assert isinstance(again, WorkerFailure)
    assert again is not failure


def test_who_is_not_answered_in_time_is_told_how_far_it_is_and_asks_again(
    questions: QuestionQueue, tmp_path: Path
) -> None:
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    told = until(
        lambda: asked(questions, "gate", path=gate, patience=0.05),
        lambda reply: isinstance(reply, Pending) and reply.progress == 0.25,
    )
    assert told == Pending(waiting=False, progress=0.25)
    assert asked(questions, number=7, patience=0.0) == Pending(waiting=True, progress=0.0)
    Path(gate).write_bytes(b"")
    assert isinstance(asked(questions, "gate", path=gate), bytes)
    assert isinstance(asked(questions, number=7), bytes)


def test_the_newest_question_goes_first_and_the_oldest_are_forgotten(
    questions: QuestionQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    asked(questions, "gate", path=gate, patience=0.5)
    for number in (1, 2, 3):
        asked(questions, number=number, patience=0.0)
    assert [dict(key)["id"] for key in questions._waiting] == ["2", "3"]
    Path(gate).write_bytes(b"")
    until(lambda: len(questions._replies), lambda count: count == 3)
    assert [dict(key)["id"] for key in questions._replies] == ["0", "3", "2"]


def test_replies_are_kept_up_to_so_many_bytes(questions: QuestionQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_KEPT", 40)
    for number in range(6):
        asked(questions, number=number)
    assert sum(map(len, (reply for reply in questions._replies.values() if isinstance(reply, bytes)))) <= 40
    assert [dict(key)["id"] for key in questions._replies][-1] == "5"


def test_long_questions_count_too(questions: QuestionQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only replies were counted: a million little ones, each to another question, would have filled the memory."""
    monkeypatch.setattr(module, "BYTES_KEPT", 3 * module.KEPT_FOR_EACH + 500)
    for number in range(4):
        asked(questions, number=number)
    assert [dict(key)["id"] for key in questions._replies] == ["1", "2", "3"]
    asked(questions, number=4, path="x" * module.KEPT_FOR_EACH)
    assert [dict(key)["id"] for key in questions._replies] == ["3", "4"]
    assert questions._bytes <= module.BYTES_KEPT


def test_the_process_ends_when_nobody_asked_for_a_while_and_starts_again() -> None:
    with closing(QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits(idle_seconds=0.05))) as questions:
        assert isinstance(asked(questions), bytes)
        until(lambda: questions._thread, lambda thread: thread is None)
        assert isinstance(asked(questions, number=1), bytes)


def test_closing_ends_who_waits(tmp_path: Path) -> None:
    questions = QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits())
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    replies: list[object] = []
    thread = threading.Thread(target=lambda: replies.append(asked(questions, "gate", path=gate)))
    thread.start()
    until(lambda: questions._running, lambda running: running is not None)
    questions.close()
    thread.join()
    assert isinstance(replies[0], Pending | WorkerFailure)
    assert questions._thread is None or not questions._thread.is_alive()
