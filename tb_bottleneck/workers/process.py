"""The program's end of a worker process: starts it, sends it one request at a time, and replaces it if it dies."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from tb_bottleneck.base.limited_process import ONE_THREAD, module_path
from tb_bottleneck.workers.ipc import (
    FrameKind,
    Refusal,
    WorkerFailure,
    WorkerLimits,
    read_frame,
    unpack_share,
    write_frame,
)

EXIT_SECONDS = 5.0  # a worker without work ends at once; one that does not end within this time is killed

_START = (
    "import sys; sys.path[:] = sys.argv[1].split('\\n'); from tb_bottleneck.workers import worker; "
    "worker.work(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], *sys.argv[5:])"
)

Reply = bytes | Refusal | WorkerFailure


@dataclass(frozen=True)
class Task:
    """What a worker process does with its requests.

    `handler` is the dotted name of a function that takes `arguments` and returns the handler: a function that takes a
    request and a progress callback, and returns the answer, both as bytes."""

    handler: str
    arguments: tuple[str, ...] = ()


class WorkerProcess:
    """Runs at most one worker process at a time. The process is started when it is first needed, and again if it died.

    `run` and `rest` are for one thread; any thread may call `interrupt` and `kill`.
    """

    def __init__(self, task: Task, limits: WorkerLimits) -> None:
        self._task = task
        self._limits = limits
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, request: bytes, on_progress: Callable[[float], None]) -> Reply:
        """Returns the answer to `request`, or why there is none. Calls `on_progress` with the completed fraction (0 to
        1). Never raises."""
        try:
            process = self._started()
        except OSError as error:
            return WorkerFailure("worker_not_started", f"{sys.executable or 'python'} could not be started: {error}")
        expired = threading.Event()
        timer = threading.Timer(self._limits.seconds_per_file, _expire, (process, expired))
        timer.daemon = True
        timer.start()
        try:
            outcome = _exchange(process, request, on_progress)
        finally:
            timer.cancel()
            timer.join()
        if isinstance(outcome, bytes | Refusal) and not expired.is_set():
            return outcome
        status = self._end(process)  # after a failure the process is in an unknown state
        if expired.is_set():
            return WorkerFailure("timed_out", f"the analysis took longer than {self._limits.seconds_per_file:g} s")
        return outcome if isinstance(outcome, WorkerFailure) else WorkerFailure("worker_died", _cause_of_death(status))

    def rest(self) -> None:
        """Ends the process. The next request starts another one."""
        if self._process is not None:
            self._end(self._process)

    def interrupt(self) -> None:
        """Kills the process. The request that it handles fails; the next request starts another process."""
        with self._lock:
            if self._process is not None:
                _kill(self._process)

    def kill(self) -> None:
        """Kills the process for good: no other process is started. A running `run` returns a failure."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                _kill(self._process)

    def _started(self) -> "subprocess.Popen[bytes]":
        process = self._process
        if process is not None and process.poll() is None:
            return process
        if process is not None:
            self._end(process)  # it died between two requests, so no recording is the cause
        with self._lock:
            if self._closed:
                raise OSError("the program is closing")
            self._process = subprocess.Popen(
                command(self._task, self._limits.memory_bytes),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # Ctrl-C is for the program; a worker ends after it
            )
            return self._process

    def _end(self, process: "subprocess.Popen[bytes]") -> int:
        """Ends the process, closes its pipes, and returns its exit status, negative for a signal."""
        with self._lock:
            self._process = None
        with contextlib.suppress(OSError):
            _pipe(process.stdin).close()
        try:
            status = process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            status = process.wait()
        _pipe(process.stdout).close()
        return status


def command(task: Task, memory_bytes: int) -> list[str]:
    """Returns the command line of a worker process with this interpreter and this process's module search path. The
    address space of the process is limited to `memory_bytes`."""
    own = (module_path(), str(memory_bytes), str(os.getpid()))
    return [sys.executable, "-c", _START, *own, task.handler, *task.arguments]


def _exchange(process: "subprocess.Popen[bytes]", request: bytes, on_progress: Callable[[float], None]) -> Reply | None:
    """Sends `request` to `process` and returns the reply. Returns None if the process ends; kills the process and
    returns None if the reply is invalid."""
    try:
        write_frame(_pipe(process.stdin), FrameKind.REQUEST, request)
        while (frame := read_frame(_pipe(process.stdout))) is not None:
            kind, payload = frame
            if kind is FrameKind.ANSWER:
                return payload
            if kind is FrameKind.REFUSAL:
                return Refusal(payload.decode())
            if kind is FrameKind.FAILURE:
                return WorkerFailure(**json.loads(payload))
            on_progress(unpack_share(payload))
    except (OSError, ValueError, TypeError, struct.error):
        _kill(process)
    return None


def _expire(process: "subprocess.Popen[bytes]", expired: threading.Event) -> None:
    expired.set()
    _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kills the process and those that it started: a worker is the leader of a process group."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg") and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "Popen was called with this pipe"
    return pipe


def _cause_of_death(status: int) -> str:
    """Returns a text about why a process ended in the middle of a request. `status` is its exit status, negative for a
    signal."""
    if status >= 0:
        return f"the worker process ended with exit status {status}; the log has its last messages"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    often = "; often the reason is that the system ran out of memory" if name == "SIGKILL" else ""
    return f"the worker process was ended by {name}{often}"
