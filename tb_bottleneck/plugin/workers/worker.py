"""The worker process: takes recordings on stdin, one after the other, and answers with reports on stdout.

Another one takes questions about recordings (plugin/workers/question_queue.py) and answers them in the same way.

`process.py` is its other end. It is a program of its own, neither a fork of the threaded server nor a re-import of its
main module. It ends when stdin ends or its parent is gone, so none outlives TensorBoard, whichever way that ends.
"""

import contextlib
import json
import os
import pkgutil
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from tb_bottleneck.plugin.workers.ipc import FrameKind, pack_share, read_frame, write_frame
from tb_bottleneck.report.cache.cached_diagnosis import Analyse, remembered
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.report.rendering.json_form import as_json

PROGRESS_SECONDS = 0.1  # at most this often is progress told
PARENT_SECONDS = 1.0  # this often the parent is looked for; the end of stdin normally tells sooner
DETAIL_CHARACTERS = 500  # of an error that nobody foresaw
NICENESS = 10  # the training that runs on this machine goes first


Answer = Callable[..., bytes]


def main(analyse: str, memory_bytes: int, parent: int) -> None:
    """Serves until stdin ends. `analyse` is the dotted name of `diagnosis.diagnose` or `answering.answer`, or of their
    like."""
    jobs, answers = _take_pipes()
    threading.Thread(target=_leave_with, args=(parent,), name="parent-watch", daemon=True).start()
    _bound(memory_bytes)
    function = pkgutil.resolve_name(analyse)
    judge = partial(remembered, function, Store.from_environment(os.environ))
    with contextlib.suppress(BrokenPipeError):  # the server left while we worked
        while (frame := read_frame(jobs)) is not None:
            job = json.loads(frame[1])
            kind, payload = _answer(function, job, answers) if "question" in job else _report(judge, job, answers)
            write_frame(answers, kind, payload)


def _answer(function: Answer, job: dict[str, Any], answers: BinaryIO) -> tuple[FrameKind, bytes]:
    """The frame that answers one question. A border like `_report`."""
    try:
        return FrameKind.ANSWER, function(job["question"], progress=_teller(answers))
    except MemoryError:
        return FrameKind.FAILURE, _failure("out_of_memory", "looking closer needed more memory than it may take")
    except Exception as error:
        return FrameKind.FAILURE, _failure("analysis_failed", f"{type(error).__name__}: {error}"[:DETAIL_CHARACTERS])


def _report(function: Analyse, job: dict[str, str], answers: BinaryIO) -> tuple[FrameKind, bytes]:
    """The frame that answers one job. This is a border: whatever goes wrong costs this recording and no other."""
    try:
        report = function(job["path"], run=job["run"], progress=_teller(answers))
        report.run = job["run"]
        as_json(report)  # a report that has no JSON form must fail here, not in a route
        return FrameKind.REPORT, report.SerializeToString()
    except MemoryError:
        return FrameKind.FAILURE, _failure("out_of_memory", "the analysis needed more memory than it may take")
    except Exception as error:
        return FrameKind.FAILURE, _failure("analysis_failed", f"{type(error).__name__}: {error}"[:DETAIL_CHARACTERS])


def _failure(code: str, detail: str) -> bytes:
    return json.dumps({"code": code, "detail": detail}).encode()


def _teller(answers: BinaryIO) -> Callable[[int, int], None]:
    """A progress callback that writes frames, not more often than PROGRESS_SECONDS."""
    told = -PROGRESS_SECONDS

    def tell(done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= PROGRESS_SECONDS:
            told = now
            write_frame(answers, FrameKind.PROGRESS, pack_share(min(1.0, done / total) if total > 0 else 0.0))

    return tell


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """stdin and stdout for frames alone: what the analysis prints goes to stderr, and it finds stdin empty."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return jobs, answers


def _bound(memory_bytes: int) -> None:
    """Bounds this process's address space and lowers its priority, where the system has such a thing."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _leave_with(parent: int) -> None:
    """Ends this process once the parent has gone, even in the middle of a file."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(0)
