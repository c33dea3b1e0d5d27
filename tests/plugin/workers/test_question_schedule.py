"""Clients take turns, questions about one trace follow each other, and the process that has it in memory answers."""

from tb_bottleneck.plugin.workers.question_queue import MAX_PER_CLIENT, WAITING_LIMIT, QuestionSchedule
from tb_bottleneck.plugin.workers.questions import (
    ComparedRecording,
    CompareQuestion,
    RecordingQuestion,
    TablesQuestion,
    TraceFile,
    paths_of,
)


def about(*paths: str) -> RecordingQuestion:
    traces = [TraceFile(path, path, 1, 1) for path in paths]
    if len(traces) == 1:
        return TablesQuestion(traces[0])
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
