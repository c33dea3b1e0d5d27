"""What a handler says, as HTTP: the border of one request, and TensorBoard's own door out."""

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from tensorboard.backend import http_util
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request, Response

from tb_bottleneck.report.rendering.json_form import as_json

logger = logging.getLogger(__name__)

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class Answer:
    """What a handler says, before it is HTTP."""

    content: bytes
    media_type: str
    code: int = 200
    encoding: str | None = None  # how the content is compressed already


Handler = Callable[[Request], Answer]


def sentence(code: int, text: str) -> Answer:
    """A sentence for people, where there is nothing else to say."""
    return Answer(text.encode(), "text/plain", code)


def message(told: Message) -> Answer:
    """A message in its JSON form."""
    return Answer(as_json(told).encode(), "application/json")


def application(handler: Handler) -> App:
    """The handler as a WSGI application."""

    def answered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        return _respond(request, _checked(handler, request))(environ, start_response)

    return answered


def _checked(handler: Handler, request: Request) -> Answer:
    """The handler's answer. This is a border: a defect costs this request, and the log tells about it."""
    if request.method not in METHODS:
        return sentence(405, "This plugin only reads: use GET.")
    try:
        return handler(request)
    except Exception:
        logger.exception("The Bottlenecks tab could not answer %s", request.path)
        return sentence(500, "This answer could not be made; TensorBoard's log says why.")


class _Unchanged(Response):
    """A 304 that keeps its media type: werkzeug drops it, and TensorBoard then logs two lines for each."""

    def get_wsgi_headers(self, environ: dict[str, Any]) -> Headers:
        """The headers as they are sent."""
        headers = super().get_wsgi_headers(environ)
        headers["Content-Type"] = self.headers["Content-Type"]
        return headers


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
