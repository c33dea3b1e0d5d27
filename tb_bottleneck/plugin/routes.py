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
from tb_bottleneck.plugin.answers import RunLists, report_answer
from tb_bottleneck.plugin.runs import Runs
from tb_bottleneck.report.jsonform import as_json
from tb_bottleneck.schema.bottleneck_pb2 import ReportAnswer

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

    def __init__(self, logdir: str, runs: Runs, analyses: Analyses) -> None:
        self._runs = runs
        self._analyses = analyses
        self._lists = RunLists(logdir, analyses)

    def apps(self) -> dict[str, App]:
        """The one table of routes, as WSGI applications."""
        return {
            "/runs": _app(self.runs),
            "/report": _app(self.report),
            "/static/*": _app(self.static),
        }

    def runs(self, request: Request) -> Answer:
        """Every recording under the logdir; the analysis of all of them starts with the first question."""
        look = self._runs.latest()
        if look is not None:
            self._analyses.want(look.listing.recordings)
        return Answer(self._lists.text(look).encode(), "application/json")

    def report(self, request: Request) -> Answer:
        """One recording's report."""
        asked = request.args.get("id", "")
        if not asked:
            return _sentence(400, "Which recording? Ask report?id=ID with an id that `runs` lists.")
        look = self._runs.latest()
        if look is None:
            return _message(ReportAnswer(id=asked, state="waiting"))
        recording = look.by_id.get(asked)
        if recording is None:
            return _sentence(404, "No recording has this id now; ask `runs` for those that are there.")
        self._analyses.want(look.listing.recordings)
        return _message(report_answer(recording, self._analyses))

    def static(self, request: Request) -> Answer:
        """A file of the built tab."""
        found = static_files.read(request.path.partition(f"/{PLUGIN_NAME}/static/")[2])
        return Answer(*found) if found else _sentence(404, "The built tab has no such file.")


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
    response: Response = http_util.Respond(request, content, answer.media_type, code=code, headers=headers)
    return _Unchanged.force_type(response) if code == 304 else response
