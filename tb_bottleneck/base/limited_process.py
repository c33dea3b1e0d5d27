"""Runs a function on untrusted data in a process of its own, with limits on memory and time."""

import contextlib
import gc
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping

from tb_bottleneck import version
from tb_bottleneck.base import errors

GIB = 1 << 30
MEMORY_BYTES = 4 * GIB
"""Address space of one process, unless TB_BOTTLENECK_MEMORY_GIB sets another limit."""

MAX_LIMIT = 1e6  # GiB or seconds: practically unlimited, and still a valid limit for the system
SECONDS_PER_FILE = 900.0
"""Time for one file, unless TB_BOTTLENECK_SECONDS_PER_FILE sets another limit. A trace of 284 MB takes seconds."""

PARENT_SECONDS = 1.0  # interval of the check for the parent; normally the end of stdin comes sooner

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment variables for one thread per process. The thread pools of BLAS would reserve address space for each core,
which uses up the memory limit, and would occupy cores that the training needs."""

_START = (
    "import sys; sys.path[:] = sys.argv[2].split('\\n'); from tb_bottleneck.base import limited_process; "
    "limited_process._serve(sys.argv[1], *map(int, sys.argv[3:]))"
)


def module_path() -> str:
    """Returns the module search path for a new process of this program, one directory per line.

    The path is set before anything is imported: `python -m` would put the working directory first, where a user's own
    `queue.py` would shadow the standard library's.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(version.__file__)))
    path = [entry for entry in sys.path if entry]
    return "\n".join(path if home in path else [*path, home])


def positive_setting(environment: Mapping[str, str], name: str, default: float) -> float:
    """Returns the number in the environment variable `name`, at most MAX_LIMIT; `default` if it is not set.

    Raises:
        ValueError: it is not a positive number; the message names the variable.
    """
    text = environment.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"the environment variable {name} is {text!r}; set it to a positive number, or unset it")
    return min(value, MAX_LIMIT)


def memory_limit(environment: Mapping[str, str]) -> int:
    """Returns the limit on the address space of one process in bytes. Raises ValueError as positive_setting does."""
    return int(positive_setting(environment, "TB_BOTTLENECK_MEMORY_GIB", MEMORY_BYTES / GIB) * GIB)


def seconds_limit(environment: Mapping[str, str]) -> float:
    """Returns the limit on the time for one file in seconds. Raises ValueError as positive_setting does."""
    return positive_setting(environment, "TB_BOTTLENECK_SECONDS_PER_FILE", SECONDS_PER_FILE)


def limit_resources(memory_bytes: int, cpu_seconds: int | None = None) -> None:
    """Limits the address space and the CPU time of this process, as far as the system supports it."""
    try:
        import resource
    except ImportError:
        return
    limits = {resource.RLIMIT_AS: memory_bytes, resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: cpu_seconds}
    for kind, limit in limits.items():
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.getrlimit(kind)
            if limit is not None:
                resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def exit_with_parent(parent: int) -> None:
    """Starts a thread that ends this process, even in the middle of a file, when the process with the id `parent` has
    ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def run_limited(function: str, data: Iterable[bytes]) -> bytes:
    """Returns the result of `function`, the dotted name of a function that takes a binary file and returns bytes. The
    file has `data`.

    Raises:
        BottleneckError: the function raised this error, or `data` did.
        TooLarge: the function needs more memory or CPU time than the limits, or it ended its process.
        Unusable: an environment variable with a limit is not a positive number.
    """
    try:
        memory, seconds = memory_limit(os.environ), max(int(seconds_limit(os.environ)), 1)
    except ValueError as error:
        raise errors.Unusable(str(error)) from None
    blocks = iter(data)
    first = next(blocks, b"")  # before the process starts: the file may not exist
    with subprocess.Popen(
        [sys.executable, "-c", _START, function, module_path(), str(memory), str(seconds), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ONE_THREAD},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(first)
                stdin.writelines(blocks)
            reply = process.stdout.read()
        except BaseException:
            process.kill()
            raise
    name, separator, result = reply.partition(b"\n")
    if not separator:
        late = process.returncode == -getattr(signal, "SIGXCPU", 0)
        because = f"took more than {seconds} s" if late else f"ended its process with status {process.returncode}"
        raise errors.TooLarge(f"Reading the file {because}.")
    if name:
        raise getattr(errors, name.decode())(result.decode())
    return result


def _serve(function: str, memory: int, seconds: int, parent: int) -> None:
    """Writes the result of `function`, or the name and the text of its error, to stdout. Runs in the new process."""
    with os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # what the function prints does not belong to the reply
        gc.disable()  # this process ends soon; with millions of new objects, collections would take most of the time
        limit_resources(memory, seconds)
        exit_with_parent(parent)
        try:
            reply = b"\n" + pkgutil.resolve_name(function)(sys.stdin.buffer)
        except errors.BottleneckError as error:
            reply = f"{type(error).__name__}\n{error}".encode("utf-8", "replace")
        except MemoryError:
            reply = (
                f"TooLarge\nReading the file needs more than {memory / GIB:.3g} GiB of memory, which is the limit. "
                "Set TB_BOTTLENECK_MEMORY_GIB to a larger number."
            ).encode()
        except Exception as error:
            reply = f"Unreadable\nThe file cannot be read: {type(error).__name__}: {error}".encode("utf-8", "replace")
        os.close(0)  # the other process may still write data that the function did not read
        with contextlib.suppress(BrokenPipeError):  # the other process has ended
            replies.write(reply)
