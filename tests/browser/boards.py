"""A TensorBoard of its own for browser tests, in a process of its own, and the browser that looks at it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS, END_SECONDS = 60, 10
RECORDED = Path(__file__).parents[2] / "demo" / "recorded"


def start_tensorboard(stack: ExitStack, *flags: str) -> str:
    """Starts TensorBoard on a free port and returns its address, without a slash at the end."""
    # Output goes to a file: an unread pipe would fill up and block the process, and a closed one breaks its exit.
    said = stack.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115  # the stack is its context manager
    command = [sys.executable, "-m", "tensorboard.main", "--port", "0", "--host", "localhost", *flags]
    process = subprocess.Popen(command, stderr=said)
    stack.callback(end, process)
    give_up = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < give_up:
        said.seek(0)
        address = re.search(r"at (http://\S+?)/? \(Press", said.read())
        if address:
            return address[1]
        time.sleep(0.1)
    said.seek(0)
    raise AssertionError(f"TensorBoard did not start:\n{said.read()}")


def end(process: subprocess.Popen[bytes]) -> None:
    """Terminates a process, and kills it if it does not end."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
