"""The worker process: reads requests on stdin, one after the other, and writes replies to stdout.

One kind of worker turns recordings into reports (`analyse_recordings`), the other one answers questions about
recordings (`answer_questions`, see question_queue.py).

`worker_client.py` is the server's end of the pipes. A worker is a new program: it is no fork of the server, which has
threads, and it does not import the server's main module. A worker ends when its stdin ends or its parent is gone, so
that no worker outlives TensorBoard.
"""

import contextlib
import json
import logging
import os
import pkgutil
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.base.limited_process import exit_with_parent, limit_resources
from tb_bottleneck.plugin.workers.ipc import FrameKind, pack_share, read_frame, write_frame
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, decode
from tb_bottleneck.report.cache.cached_diagnosis import Analyse, diagnose_cached, listed
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.report.rendering.json_form import as_json
from tb_bottleneck.sources.file_system import LOCAL

if TYPE_CHECKING:
    from tb_bottleneck.drilldown.inspected_trace import TraceCache

PROGRESS_SECONDS = 0.1  # minimum time between two progress frames
DETAIL_CHARACTERS = 500  # of the message of an unexpected exception
NICENESS = 10  # the training that runs on this machine has priority

ProgressCallback = Callable[[int, int], None]
Reply = tuple[FrameKind, bytes]
Answer = Callable[[RecordingQuestion, "TraceCache", ProgressCallback], bytes]

_log = logging.getLogger(__name__)


def analyse_recordings(function: str, memory_bytes: int, parent: int) -> None:
    """Turns recordings into reports until stdin ends. `function` is the dotted name of
    `diagnosis.recording.diagnose_recording`, or of a function with the same signature. `memory_bytes` limits the
    address space of this process, and `parent` is the process id of the server."""
    requests, replies = _start(memory_bytes, parent)
    store = Store.from_environment(os.environ)
    _serve(requests, replies, partial(_report, pkgutil.resolve_name(function), store))


def answer_questions(function: str, memory_bytes: int, parent: int) -> None:
    """Answers questions until stdin ends. `function` is the dotted name of `dispatch.answer`, or of a function with the
    same signature. Traces stay in memory between questions. `memory_bytes` and `parent` are as in
    `analyse_recordings`."""
    requests, replies = _start(memory_bytes, parent)
    from tb_bottleneck.drilldown.inspected_trace import TraceCache

    _serve(requests, replies, partial(_answer, pkgutil.resolve_name(function), TraceCache()))


def _start(memory_bytes: int, parent: int) -> tuple[BinaryIO, BinaryIO]:
    pipes = _take_pipes()
    LOCAL.opens_links = False  # the server has resolved the paths
    exit_with_parent(parent)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)
    limit_resources(memory_bytes)
    return pipes


def _serve(requests: BinaryIO, replies: BinaryIO, handle: Callable[[bytes, ProgressCallback], Reply]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the server has ended
        while (frame := read_frame(requests)) is not None:
            write_frame(replies, *handle(frame[1], _progress_writer(replies)))


def _answer(answer: Answer, traces: "TraceCache", payload: bytes, progress: ProgressCallback) -> Reply:
    """Returns the reply to the encoded question `payload`, which the function `answer` answers with the cached
    `traces`. Errors become replies, so that a failure affects one question only."""
    try:
        return FrameKind.ANSWER, answer(decode(payload), traces, progress)
    except BottleneckError as error:
        return FrameKind.REFUSAL, _sentence(str(error)).encode("utf-8", "replace")
    except BrokenPipeError:  # the server has ended
        raise
    except MemoryError:
        return _failure("out_of_memory", "the answer needed more memory than the worker process may use")
    except Exception as error:
        _log.exception("A question about a recording could not be answered: %s", _excerpt(payload))
        return _failure("analysis_failed", _described(error))


def _report(analyse: Analyse, store: Store | None, payload: bytes, progress: ProgressCallback) -> Reply:
    """Returns the reply to `payload`, the request for the report of one recording, which the function `analyse` makes.
    Errors become replies, so that a failure affects one recording only."""
    job = json.loads(payload)
    try:
        report = listed(store, job["path"], job["run"]) if job["for_list"] else None
        kind = FrameKind.REPORT if report is None else FrameKind.LISTED
        report = report or diagnose_cached(analyse, store, job["path"], run=job["run"], progress=progress)
        report.run, report.source = job["run"], job["source"]
        as_json(report)  # a report without a JSON form must fail here, not in a route
        return kind, report.SerializeToString()
    except BrokenPipeError:  # the server has ended
        raise
    except MemoryError:
        return _failure("out_of_memory", "the analysis needed more memory than the worker process may use")
    except Exception as error:
        _log.exception("A recording could not be analysed: %s", _excerpt(payload))
        return _failure("analysis_failed", _described(error))


def _failure(code: str, detail: str) -> Reply:
    return FrameKind.FAILURE, json.dumps({"code": code, "detail": detail}).encode()


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:DETAIL_CHARACTERS]


def _excerpt(payload: bytes) -> str:
    """Returns the beginning of the request `payload` as text for the log. A request is JSON in ASCII, so the text has
    no control characters."""
    return payload[:DETAIL_CHARACTERS].decode("ascii", "replace")


def _sentence(text: str) -> str:
    """Returns `text`, the message of an error, with a capital letter and a full stop. A question keeps its question
    mark."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def _progress_writer(replies: BinaryIO) -> ProgressCallback:
    """Returns a progress callback that writes frames to `replies`, at most one every PROGRESS_SECONDS."""
    written_at = -PROGRESS_SECONDS

    def write(done: int, total: int) -> None:
        nonlocal written_at
        now = time.monotonic()
        if now - written_at >= PROGRESS_SECONDS:
            written_at = now
            write_frame(replies, FrameKind.PROGRESS, pack_share(min(1.0, done / total) if total > 0 else 0.0))

    return write


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Returns stdin and stdout, reserved for frames. Afterwards, the analysis finds stdin empty, and what it prints
    goes to stderr."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    os.dup2(2, 1)
    return requests, replies
