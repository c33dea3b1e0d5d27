"""The server's end of a worker process: starts it, hands it one recording at a time, survives its death."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO

from google.protobuf.message import DecodeError

from tb_bottleneck import version
from tb_bottleneck.plugin.workers.failures import WorkerFailure
from tb_bottleneck.plugin.workers.ipc import FrameKind, read_frame, unpack_share, write_frame
from tb_bottleneck.plugin.workers.worker_limits import WorkerLimits
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import Recording

GOODBYE_SECONDS = 5.0  # a worker without work ends at once; one that does not within this time is killed

_START = (
    "import sys; sys.path[:] = sys.argv[4].split('\\n'); from tb_bottleneck.plugin.workers import worker; "
    "worker.main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"
)
"""What the interpreter is told to run. The path is set before anything is imported: `-m` would put the working
directory first, where a user's own `queue.py` would shadow the standard library's."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""BLAS pools reserve address space per core, which would use up the memory bound, and cores that the training needs."""

Outcome = Report | WorkerFailure
Reply = bytes | WorkerFailure


class WorkerProcess:
    """At most one process at a time, started when it is first needed and again after one died.

    `analyse`, `ask` and `rest` belong to one thread; `interrupt` and `kill` may be called by any.
    """

    def __init__(self, analyse: str, limits: WorkerLimits) -> None:
        self._analyse = analyse
        self._limits = limits
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def analyse(self, recording: Recording, tell: Callable[[float], None]) -> Outcome:
        """The recording's report, or what kept it from being made; `tell` hears of the share done. Never raises."""
        outcome = self._run({"path": recording.path, "run": recording.run}, tell)
        return outcome if isinstance(outcome, Outcome) else WorkerFailure("worker_died", "the process talked nonsense")

    def ask(self, question: Mapping[str, object], tell: Callable[[float], None]) -> Reply:
        """The answer to a question, or what kept it from being made. Never raises."""
        outcome = self._run({"question": question}, tell)
        return outcome if isinstance(outcome, Reply) else WorkerFailure("worker_died", "the process talked nonsense")

    def _run(self, job: Mapping[str, object], tell: Callable[[float], None]) -> Report | bytes | WorkerFailure:
        try:
            process = self._started()
        except OSError as error:
            return WorkerFailure("worker_not_started", f"{sys.executable or 'python'} could not be started: {error}")
        expired = threading.Event()
        timer = threading.Timer(self._limits.seconds_per_file, _expire, (process, expired))
        timer.daemon = True
        timer.start()
        try:
            outcome = _converse(process, job, tell)
        finally:
            timer.cancel()
            timer.join()
        if isinstance(outcome, Report | bytes) and not expired.is_set():
            return outcome
        status = self._end(process)  # a process that failed once is not trusted with the next recording
        if expired.is_set():
            return WorkerFailure("timed_out", f"the analysis was not over after {self._limits.seconds_per_file:g} s")
        return outcome if isinstance(outcome, WorkerFailure) else WorkerFailure("worker_died", _cause_of_death(status))

    def rest(self) -> None:
        """Lets the process end; the next recording starts another."""
        if self._process is not None:
            self._end(self._process)

    def interrupt(self) -> None:
        """Ends the process, and with it what it does now, which fails; the next job starts another."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def kill(self) -> None:
        """Ends the process now and starts none any more; an `analyse` under way returns a Failure."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _started(self) -> "subprocess.Popen[bytes]":
        process = self._process
        if process is not None and process.poll() is None:
            return process
        if process is not None:
            self._end(process)  # it died while it had no work; no recording is to blame
        with self._lock:
            if self._closed:
                raise OSError("the plugin is closing")
            self._process = subprocess.Popen(
                command(self._analyse, self._limits.memory_bytes),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # Ctrl-C is for the server; a worker leaves when the server has left
            )
            return self._process

    def _end(self, process: "subprocess.Popen[bytes]") -> int:
        """Ends the process and frees its pipes; returns its exit status, negative for a signal."""
        with self._lock:
            self._process = None
        with contextlib.suppress(OSError):
            _pipe(process.stdin).close()
        try:
            status = process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        _pipe(process.stdout).close()
        return status


def command(analyse: str, memory_bytes: int) -> list[str]:
    """The command line that starts a worker with this interpreter and this process's module search path."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(version.__file__)))
    path = [entry for entry in sys.path if entry]
    search = path if home in path else [*path, home]
    return [sys.executable, "-c", _START, analyse, str(memory_bytes), str(os.getpid()), "\n".join(search)]


def _converse(
    process: "subprocess.Popen[bytes]", job: Mapping[str, object], tell: Callable[[float], None]
) -> Report | bytes | WorkerFailure | None:
    """Hands over the job and waits for the answer; None where the process broke off or talked nonsense."""
    try:
        write_frame(_pipe(process.stdin), FrameKind.JOB, json.dumps(job).encode())
        while (frame := read_frame(_pipe(process.stdout))) is not None:
            kind, payload = frame
            if kind is FrameKind.REPORT:
                return Report.FromString(payload)
            if kind is FrameKind.ANSWER:
                return payload
            if kind is FrameKind.FAILURE:
                return WorkerFailure(**json.loads(payload))
            tell(unpack_share(payload))
    except (OSError, ValueError, struct.error, DecodeError):
        process.kill()
    return None


def _expire(process: "subprocess.Popen[bytes]", expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "Popen was asked for this pipe"
    return pipe


def _cause_of_death(status: int) -> str:
    """What is known of a process that broke off, from its exit status."""
    if status >= 0:
        return f"the process that read it ended with exit status {status}; its last words are in TensorBoard's log"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    often = "; often that is the system running out of memory" if name == "SIGKILL" else ""
    return f"the process that read it was ended by {name}{often}"
