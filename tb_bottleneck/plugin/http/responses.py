"""Responses of the routes as values, responses that many clients share, and the WSGI application of a handler."""

import gzip
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.message import Message
from tensorboard.backend import http_util
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request
from werkzeug.wrappers import Response as WsgiResponse

from tb_bottleneck.base.units import one_line
from tb_bottleneck.plugin.http.static_files import HostPolicy, refusal
from tb_bottleneck.plugin.turns import short_turns
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisState
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.schema.evidence_pb2 import Pending
from tb_bottleneck.workers.ipc import Refusal, WorkerFailure
from tb_bottleneck.workers.process import Reply

logger = logging.getLogger(__name__)

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

METHODS = ("GET", "HEAD")
MAX_CLIENT_NAME, MAX_LOGGED = 100, 300
_THIS_MACHINE = ("", "::1", "::ffff:127.0.0.1")  # "": a Unix socket


@dataclass(frozen=True)
class Response:
    """The result of an HTTP handler: the content, and how it is sent.

    `code` is the HTTP status, `encoding` the compression of the content, if any. `tag` identifies the content; if it is
    empty, a tag is made from the content."""

    content: bytes
    media_type: str
    code: int = 200
    encoding: str | None = None  # the compression of the content, if any
    tag: str = ""  # identifies the content; empty: made from it


Handler = Callable[[Request], Response]


def error(code: int, sentence: str) -> Response:
    """Returns an error response with the HTTP status `code` and one `sentence` of plain text."""
    return Response(sentence.encode("utf-8", "replace"), "text/plain", code)


def message(content: Message, code: int = 200) -> Response:
    """Returns an HTTP response with the protobuf message `content` as JSON and the HTTP status `code`."""
    return Response(as_json(content).encode(), "application/json", code)


def pending(state: AnalysisState) -> Response:
    """Returns a response with HTTP status 202 and the progress `state`. Status 202 means that the answer is not ready
    and the client must ask again."""
    return message(Pending(state=state.name, progress=state.progress), 202)


def worker_reply(reply: Reply | AnalysisState, encoding: str | None = None) -> Response:
    """Returns the HTTP response for `reply`, the reply of a worker process. `encoding` is the compression of an answer,
    if any."""
    match reply:
        case bytes():
            return Response(reply, "application/json", encoding=encoding)
        case AnalysisState():
            return pending(reply)
        case Refusal():
            return error(422, reply.sentence)
        case WorkerFailure():
            return error(500, f"The answer could not be computed: {reply.detail}.")


def client_of(request: Request) -> str:
    """Returns an identifier of the client, by which the worker processes are shared fairly among clients.

    This is the address of the client. If the request comes from this machine, the last address in the header
    X-Forwarded-For is added, because a proxy (a notebook server, a tunnel, a web server) may forward requests of
    several clients. In requests from other machines, the header is ignored: a client could state a new address in each
    request.
    """
    address = request.remote_addr or ""
    if address in _THIS_MACHINE or address.startswith("127."):
        address += " " + request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return address[:MAX_CLIENT_NAME]


def application(handler: Handler, hosts: HostPolicy | None = None) -> App:
    """Returns `handler` as a WSGI application. With `hosts`, the application refuses requests for host names that this
    policy does not accept."""

    def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        host = environ.get("HTTP_HOST", "")
        if hosts is not None and not hosts.accepts(host):
            return _as_wsgi(request, error(403, refusal(host)))(environ, start_response)
        return _as_wsgi(request, _handled(handler, request))(environ, start_response)

    return respond


def _handled(handler: Handler, request: Request) -> Response:
    """Returns the response of `handler`. Returns an error 405 if the method is not in METHODS. If the handler raises an
    exception, logs the exception and returns an error 500."""
    if request.method not in METHODS:
        return error(405, "This plugin only answers GET and HEAD.")
    try:
        return handler(request)
    except Exception:
        logger.exception("The Bottlenecks tab could not answer %s", one_line(request.path, MAX_LOGGED))
        return error(500, "The answer could not be computed; TensorBoard's log has the details.")


class _NotModified(WsgiResponse):
    """A response with HTTP status 304 that keeps its media type. werkzeug's own response drops the type, and
    TensorBoard then logs two lines for each response."""

    def get_wsgi_headers(self, environ: dict[str, Any]) -> Headers:
        """Returns the HTTP headers of the response, with the media type."""
        headers = super().get_wsgi_headers(environ)
        headers["Content-Type"] = self.headers["Content-Type"]
        return headers


def _as_wsgi(request: Request, response: Response) -> WsgiResponse:
    """Returns `response` as a WSGI response, made by TensorBoard's own `Respond`. The status is 304 if the client
    already has the content."""
    headers = []
    content: bytes = response.content
    code = response.code
    if code == 405:
        headers = [("Allow", ", ".join(METHODS))]
    elif code == 200:
        tag = response.tag or hashlib.sha256(content).hexdigest()[:32]
        headers = [("ETag", f'W/"{tag}"')]  # weak: the same content may be sent compressed or not
        if request.if_none_match.contains_weak(tag):
            code, content = 304, b""
    encoding = response.encoding if content else None
    sent: WsgiResponse = http_util.Respond(
        request, content, response.media_type, code=code, content_encoding=encoding, headers=headers
    )
    return _NotModified.force_type(sent) if code == 304 else sent


SHARE_OF_TIME = 0.05
"""Largest share of the time in which responses are made, however many clients ask."""

_LEVEL = 3  # of gzip, as in TensorBoard


class SharedResponse:
    """A response that many clients share, because it takes long to make.

    A new response is made when a client asks, but only so often that this takes at most a twentieth of the time
    (SHARE_OF_TIME). In between, clients get the last response. For example, to make the list of 8,000 recordings takes
    0.3 s. While recordings are analysed, the list changes all the time, and would be made, compressed and hashed for
    each client every second. With this class, that list is at most 6 s old, and a list of ten recordings at most 40 ms.

    Any thread may call `get`."""

    def __init__(self, make: Callable[[], Response], now: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._now = now
        self._making = threading.Lock()
        self._last: Response | None = None
        self._valid_until = 0.0
        self._content = b""

    def get(self) -> Response:
        """Returns the response, compressed with gzip. Raises any exception that occurs while the response is made."""
        last = self._last
        if last is not None and (self._now() < self._valid_until or self._making.locked()):
            return last
        with self._making, short_turns():
            if self._last is not None and self._now() < self._valid_until:
                return self._last  # another thread made it meanwhile
            return self._made()

    def _made(self) -> Response:
        began = self._now()
        made = self._make()
        if self._last is None or made.content != self._content:
            tag = hashlib.sha256(made.content).hexdigest()[:32]
            compressed = gzip.compress(made.content, _LEVEL, mtime=0)
            self._content = made.content
            self._last = replace(made, content=compressed, encoding="gzip", tag=tag)
        ended = self._now()
        self._valid_until = ended + (ended - began) * (1 / SHARE_OF_TIME - 1)
        return self._last
