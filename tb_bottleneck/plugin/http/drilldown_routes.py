"""The routes that look into one trace: timeline, tables, tree and slice."""

from collections.abc import Callable
from typing import TypeAlias

from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http.recording_lookup import RecordingLookup, finite_number
from tb_bottleneck.plugin.http.responses import Response, error, worker_reply
from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.plugin.workers.questions import (
    RecordingQuestion,
    SliceQuestion,
    TablesQuestion,
    TimelineQuestion,
    TraceFile,
    TreeQuestion,
)

TREES = ("module", "line", "operator", "range")
MAX_DIGITS = 9

_NewQuestion: TypeAlias = Callable[..., RecordingQuestion]


class DrilldownRoutes:
    """The handlers; a worker process computes the answers."""

    def __init__(self, lookup: RecordingLookup, questions: QuestionQueue) -> None:
        self._lookup = lookup
        self._questions = questions

    def timeline(self, request: Request) -> Response:
        """Returns a range of a recording's timeline."""
        return self._ask(request, TimelineQuestion, ("begin", "end", "pixels"))

    def tables(self, request: Request) -> Response:
        """Returns the tables of a recording's judged window."""
        return self._ask(request, TablesQuestion, ())

    def tree(self, request: Request) -> Response:
        """Returns where the time of a recording goes, or how that differs from another recording."""
        recording = self._lookup.trace(request)
        if isinstance(recording, Response):
            return recording
        by = request.args.get("by", TREES[0])
        if by not in TREES:
            return error(400, f"`by` must be one of {', '.join(TREES)}.")
        numbers: dict[str, int | None] = {}
        for name in ("device", "first", "last"):
            text = request.args.get(name, "")
            if text and not (text.isascii() and text.isdigit() and len(text) < MAX_DIGITS):
                return error(400, f"`{name}` must be a whole number; steps count from 1.")
            numbers[name] = int(text) if text else None
        other = self._lookup.other_trace(request, "with") if request.args.get("with") else None
        if isinstance(other, Response):
            return other
        question = TreeQuestion(
            TraceFile.of(id_of(recording), recording),
            by,
            merged=request.args.get("merged") == "1",
            device=numbers["device"],
            first_step=numbers["first"],
            last_step=numbers["last"],
            other=None if other is None else TraceFile.of(id_of(other), other),
        )
        return worker_reply(self._questions.ask(question))

    def slice(self, request: Request) -> Response:
        """Returns a range of a recording as a trace of its own."""
        return self._ask(request, SliceQuestion, ("begin", "end"), encoding="gzip")

    def _ask(
        self, request: Request, new_question: _NewQuestion, parameters: tuple[str, ...], encoding: str | None = None
    ) -> Response:
        recording = self._lookup.trace(request)
        if isinstance(recording, Response):
            return recording
        numbers: list[float | None] = []
        for name in parameters:
            try:
                numbers.append(finite_number(request.args.get(name, "")))
            except ValueError:
                return error(400, f"`{name}` is not a number: omit it, or use nanoseconds on the trace's clock.")
        question = new_question(TraceFile.of(id_of(recording), recording), *numbers)
        return worker_reply(self._questions.ask(question), encoding)
