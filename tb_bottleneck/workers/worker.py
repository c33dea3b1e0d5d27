"""The worker process: reads requests on stdin, one after the other, and writes replies to stdout.

`process.py` is the other end of the pipes. A worker is a new program: it is no fork of the program that uses it, which
may have threads, and it does not import that program's main module. A worker ends when its stdin ends or its parent is
gone, so that no worker outlives the program.
"""

import contextlib
import json
import logging
import os
import pkgutil
import time
from collections.abc import Callable
from typing import BinaryIO

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.base.limited_process import exit_with_parent, limit_resources
from tb_bottleneck.workers.ipc import FrameKind, pack_share, read_frame, write_frame

PROGRESS_SECONDS = 0.1  # minimum time between two progress frames
DETAIL_CHARACTERS = 500  # of the message of an unexpected exception
NICENESS = 10  # the training that runs on this machine has priority

ProgressCallback = Callable[[int, int], None]
Handler = Callable[[bytes, ProgressCallback], bytes]

_log = logging.getLogger(__name__)


def work(memory_bytes: int, parent: int, handler: str, *arguments: str) -> None:
    """Handles requests until stdin ends. `handler` and `arguments` are those of a Task. `memory_bytes` limits the
    address space of this process, and `parent` is the process id of the program."""
    requests, replies = _take_pipes()
    exit_with_parent(parent)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)
    limit_resources(memory_bytes)
    handle: Handler = pkgutil.resolve_name(handler)(*arguments)
    with contextlib.suppress(BrokenPipeError):  # the program has ended
        while (frame := read_frame(requests)) is not None:
            write_frame(replies, *_reply(handle, frame[1], _progress_writer(replies)))


def _reply(handle: Handler, request: bytes, progress: ProgressCallback) -> tuple[FrameKind, bytes]:
    """Returns the reply to `request`. Errors become replies, so that a failure affects one request only."""
    try:
        return FrameKind.ANSWER, handle(request, progress)
    except BottleneckError as error:
        return FrameKind.REFUSAL, _sentence(str(error)).encode("utf-8", "replace")
    except BrokenPipeError:  # the program has ended
        raise
    except MemoryError:
        return _failure("out_of_memory", "the work needed more memory than the worker process may use")
    except Exception as error:
        # A request is JSON in ASCII, so its beginning has no control characters.
        _log.exception("A request could not be handled: %s", request[:DETAIL_CHARACTERS].decode("ascii", "replace"))
        return _failure("analysis_failed", f"{type(error).__name__}: {error}"[:DETAIL_CHARACTERS])


def _failure(code: str, detail: str) -> tuple[FrameKind, bytes]:
    return FrameKind.FAILURE, json.dumps({"code": code, "detail": detail}).encode()


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
