"""A real TensorBoard in a process of its own, and a real Chromium that looks at it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Frame, Page, sync_playwright

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


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests; each takes a fresh context."""
    if CHROMIUM is None:
        pytest.fail("no Chromium was found on PATH; install it, or name it in the environment variable CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def start_tensorboard(stack: ExitStack, *flags: str) -> str:
    """Starts TensorBoard on a free port and returns its address, without a slash at the end."""
    # Its words go to a file: a pipe that nobody reads would fill up and stop it, and a closed one breaks its exit.
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
    """Asks a process to end, and makes it end where it does not."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def recorded_board() -> Iterator[str]:
    """TensorBoard on the demo's recordings, with the loader that is its default."""
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(RECORDED))


@pytest.fixture
def board() -> Iterator[Callable[..., str]]:
    """Starts a TensorBoard of one's own; it ends with the test."""
    with ExitStack() as stack:
        yield lambda *flags: start_tensorboard(stack, *flags)


@dataclass
class Visit:
    """A page of TensorBoard with our tab open, and everything that went wrong or off the origin in it."""

    page: Page
    frame: Frame
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The words of the tab."""
        return self.frame.locator("body").inner_text()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """Opens the tab: `visit(address, run=..., **context options)`."""
    with ExitStack() as stack:

        def open_tab(address: str, run: str = "", **options: object) -> Visit:
            context = chromium.new_context(**options)  # type: ignore[arg-type]
            stack.callback(context.close)
            page = context.new_page()
            requests: list[str] = []
            errors: list[str] = []
            page.on("request", lambda request: requests.append(request.url))
            page.on("pageerror", lambda error: errors.append(str(error)))
            chosen = f"&p.tb_bottleneck.run={run}" if run else ""
            page.goto(f"{address}/#tb_bottleneck{chosen}")
            element = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached", timeout=30_000)
            frame = element.content_frame()
            assert frame is not None
            return Visit(page, frame, requests, errors)

        yield open_tab
