"""Child processes of the doctor. They end after a deadline, or when the doctor ends."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

PACKAGE_ROOT = Path(__file__).parents[2]
END_S = 3.0
"""Seconds between SIGTERM and SIGKILL, in which a process can end by itself."""
TOO_LATE = "did not end within"
_JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""Environment variables of a job in which the doctor may run. They are removed for child processes, because the
doctor's training has one rank."""


@contextlib.contextmanager
def child(
    arguments: Sequence[str], folder: Path, output: "IO[bytes] | int" = subprocess.DEVNULL
) -> "Iterator[subprocess.Popen[bytes]]":
    """Starts Python with `arguments` in `folder`, and yields the process. Ends the process after the block.

    The process has its own session, so that Ctrl-C reaches only the doctor, which then ends the process. The cache and
    the temporary files of the process are in `folder`.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _JOB}
    paths = [str(PACKAGE_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "TB_BOTTLENECK_CACHE": str(folder / "cache")}
    environment["TB_BOTTLENECK_QUIET"] = "1"
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process)


def run_child(arguments: Sequence[str], folder: Path, seconds: float) -> str:
    """Runs Python with `arguments` in `folder` for at most `seconds`.

    Returns how the process failed, as the end of a sentence; empty if it did not fail.
    """
    with child(arguments, folder) as process:
        try:
            status = process.wait(max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            return f"{TOO_LATE} {seconds:.0f} s"
    return f"ended with signal {-status}" if status < 0 else f"ended with status {status}" if status else ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
    finally:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
