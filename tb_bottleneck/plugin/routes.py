"""The routes of http_api.md: what is asked, checked, and answered. GET and HEAD only; nothing changes state."""

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from tensorboard.backend import http_util
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request, Response

from tb_bottleneck.plugin import static_files
from tb_bottleneck.plugin.analyses import Analyses
from tb_bottleneck.plugin.answers import RunLists
from tb_bottleneck.plugin.closer import finite, unanswered
from tb_bottleneck.plugin.comparing import Arguments, Comparisons, Refused, Said
from tb_bottleneck.plugin.questions import Questions
from tb_bottleneck.plugin.ranks import ranks_answer
from tb_bottleneck.plugin.runs import Runs
from tb_bottleneck.plugin.series import answer_text
from tb_bottleneck.plugin.telemetry import Telemetries
from tb_bottleneck.plugin.witnesses import Witnesses
from tb_bottleneck.report.jsonform import as_json
from tb_bottleneck.schema.bottleneck_pb2 import ReportAnswer
from tb_bottleneck.schema.evidence_pb2 import RanksAnswer, TablesAnswer
from tb_bottleneck.schema.telemetry_pb2 import TelemetryAnswer
from tb_bottleneck.sources.logdir import Recording

logger = logging.getLogger(__name__)

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

PLUGIN_NAME = "tb_bottleneck"
METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class Answer:
    """What a handler says, before it is HTTP."""

    content: bytes
    media_type: str
    code: int = 200
    encoding: str | None = None  # how the content is compressed already


class _Unchanged(Response):
    """A 304 that keeps its media type: werkzeug drops it, and TensorBoard then logs two lines for each."""

    def get_wsgi_headers(self, environ: dict[str, Any]) -> Headers:
        """The headers as they are sent."""
        headers = super().get_wsgi_headers(environ)
        headers["Content-Type"] = self.headers["Content-Type"]
        return headers


def _sentence(code: int, text: str) -> Answer:
    return Answer(text.encode(), "text/plain", code)


def _message(message: Message) -> Answer:
    return Answer(as_json(message).encode(), "application/json")


class Routes:
    """The handlers and what they answer from."""

    def __init__(
        self, logdir: str, runs: Runs, analyses: Analyses, questions: Questions, telemetries: Telemetries
    ) -> None:
        self._runs = runs
        self._analyses = analyses
        self._questions = questions
        self._telemetries = telemetries
        self._comparisons = Comparisons(runs, questions)
        self._witnesses = Witnesses(analyses, telemetries)
        self._lists = RunLists(logdir, self._witnesses)

    def apps(self) -> dict[str, App]:
        """The one table of routes, as WSGI applications."""
        return {
            "/runs": _app(self.runs),
            "/report": _app(self.report),
            "/ranks": _app(self.ranks),
            "/timeline": _app(self.timeline),
            "/tables": _app(self.tables),
            "/slice": _app(self.slice),
            "/telemetry": _app(self.telemetry),
            "/compare": _app(_comparing(self._comparisons.compare)),
            "/series": _app(_comparing(self._comparisons.series)),
            "/what_if": _app(_comparing(self._comparisons.what_if)),
            "/devices": _app(_comparing(self._comparisons.devices)),
            "/static/*": _app(self.static),
        }

    def runs(self, request: Request) -> Answer:
        """Every recording under the logdir; the analysis of all of them starts with the first question."""
        look = self._runs.latest()
        if look is not None:
            self._witnesses.want(look.listing.recordings)
        return Answer(self._lists.text(look).encode(), "application/json")

    def report(self, request: Request) -> Answer:
        """One recording's report."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        if found is None:
            return _message(ReportAnswer(id=request.args["id"], state="waiting"))
        return _message(self._witnesses.answer(found))

    def ranks(self, request: Request) -> Answer:
        """The job that a recording is a rank of."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        look = self._runs.latest()
        if found is None or look is None:
            return _message(RanksAnswer(id=request.args["id"]))
        return _message(ranks_answer(found, look, self._analyses))

    def timeline(self, request: Request) -> Answer:
        """A stretch of a recording's timeline."""
        return self._closer(request, "timeline", ("begin", "end", "pixels"))

    def tables(self, request: Request) -> Answer:
        """What ran in a recording's window."""
        return self._closer(request, "tables", ())

    def slice(self, request: Request) -> Answer:
        """A stretch of a recording as a trace of its own."""
        return self._closer(request, "slice", ("begin", "end"))

    def telemetry(self, request: Request) -> Answer:
        """The series of a run, as dense as was asked for."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        asked = request.args["id"]
        if found is None:
            return _message(TelemetryAnswer(id=asked))
        if not found.is_telemetry:
            return _sentence(404, "This recording is a trace; `runs` lists telemetry with the witness `telemetry`.")
        try:
            most, since, until = (finite(request.args.get(name, "")) for name in ("points", "since", "until"))
        except ValueError:
            return _sentence(400, "`points` is a count, `since` and `until` are ns since 1970: give numbers, or none.")
        heard = self._telemetries.heard(found)
        with heard.lock:
            report = heard.brought_up_to_date()
            wanted = None if most is None else max(int(most), 0)
            text = answer_text(asked, heard, report, wanted, int(since or 0), None if until is None else int(until))
        return Answer(text.encode(), "application/json")

    def _asked_for(self, request: Request) -> Recording | Answer | None:
        """The recording that the request names; an Answer where it names none, None while nobody has looked yet."""
        asked = request.args.get("id", "")
        if not asked:
            route = request.path.rpartition("/")[2]
            return _sentence(400, f"Which recording? Ask {route}?id=ID with an id that `runs` lists.")
        look = self._runs.latest()
        if look is None:
            return None
        recording = look.by_id.get(asked)
        if recording is None:
            return _sentence(404, "No recording has this id now; ask `runs` for those that are there.")
        self._witnesses.want(look.listing.recordings)
        return recording

    def _closer(self, request: Request, ask: str, numbers: tuple[str, ...]) -> Answer:
        """The answer of the process for questions, or how far it is."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        if found is not None and found.is_telemetry:
            return _sentence(
                404, "This recording is telemetry, without a timeline; ask telemetry?id=ID for its series."
            )
        asked = request.args["id"]
        if found is None:
            return _message(TablesAnswer(id=asked, state="waiting"))
        about: dict[str, str | float | None] = {}
        for name in numbers:
            try:
                about[name] = finite(request.args.get(name, ""))
            except ValueError:
                return _sentence(400, f"`{name}` is no number: leave it out, or give nanoseconds on the trace's clock.")
        question = {"ask": ask, "id": asked, "path": found.path, "mtime_ns": found.mtime_ns, **about}
        reply = self._questions.ask(question)
        if isinstance(reply, bytes):
            return Answer(reply, "application/json", encoding="gzip" if ask == "slice" else None)
        return _message(unanswered(asked, reply))

    def static(self, request: Request) -> Answer:
        """A file of the built tab."""
        found = static_files.read(request.path.partition(f"/{PLUGIN_NAME}/static/")[2])
        return Answer(*found) if found else _sentence(404, "The built tab has no such file.")


def _comparing(handler: Callable[[Arguments], Said]) -> Callable[[Request], Answer]:
    """A handler of plugin/comparing.py as one of ours."""

    def answered(request: Request) -> Answer:
        said = handler(request.args)
        if isinstance(said, Refused):
            return _sentence(said.code, said.text)
        return Answer(said, "application/json") if isinstance(said, bytes) else _message(said)

    return answered


def _app(handler: Callable[[Request], Answer]) -> App:
    """The handler as a WSGI application."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        return _respond(request, _checked(handler, request))(environ, start_response)

    return application


def _checked(handler: Callable[[Request], Answer], request: Request) -> Answer:
    """The handler's answer. This is a border: a defect costs this request, and the log tells about it."""
    if request.method not in METHODS:
        return _sentence(405, "This plugin only reads: use GET.")
    try:
        return handler(request)
    except Exception:
        logger.exception("The Bottlenecks tab could not answer %s", request.path)
        return _sentence(500, "This answer could not be made; TensorBoard's log says why.")


def _respond(request: Request, answer: Answer) -> Response:
    """The answer as HTTP, through TensorBoard's own door; 304 where the asker has it already."""
    headers = []
    content: bytes = answer.content
    code = answer.code
    if code == 405:
        headers = [("Allow", ", ".join(METHODS))]
    elif code == 200:
        tag = hashlib.sha256(content).hexdigest()[:32]
        headers = [("ETag", f'W/"{tag}"')]  # weak: the same content may travel compressed or not
        if request.if_none_match.contains_weak(tag):
            code, content = 304, b""
    encoding = answer.encoding if content else None
    response: Response = http_util.Respond(
        request, content, answer.media_type, code=code, content_encoding=encoding, headers=headers
    )
    return _Unchanged.force_type(response) if code == 304 else response
