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
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Frame, Page, expect, sync_playwright

from tests.browser.stage import EVENTS, NAME, stage, telemetry

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
PATIENCE = 60_000  # ms: a busy machine analyses slowly; nothing waits this long for its own sake
VIEWS = {
    "timeline": "section.timeline canvas",
    "tables": "section.sortable table",
    "roofline": "#panel section",
    "ranks": "section.ranks table",
    "live": "section.telemetry",
}
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


@pytest.fixture(scope="session")
def staged_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """TensorBoard on the stage (stage.py)."""
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(stage(tmp_path_factory.mktemp("stage"))))


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
    """Opens the tab: `visit(address, run=..., **context options)`; `before` may prepare the page."""
    with ExitStack() as stack:

        def open_tab(
            address: str, run: str = "", before: Callable[[Page], None] | None = None, **options: object
        ) -> Visit:
            context = chromium.new_context(**options)  # type: ignore[arg-type]
            stack.callback(context.close)
            page = context.new_page()
            # What a test still routes when it ends would fail in whichever test comes next.
            stack.callback(page.unroute_all, behavior="ignoreErrors")
            if before is not None:
                before(page)
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


@pytest.fixture
def look(staged_board: str, visit: Callable[..., Visit]) -> Callable[..., Visit]:
    """Opens a view of a run, and waits until it is drawn."""

    def open_view(view: str, run: str = "starved", source: str = NAME, **options: object) -> Visit:
        address = quote(f"{run}/{source}", safe="") + (f"&p.tb_bottleneck.view={view}" if view != "diagnosis" else "")
        seen = visit(staged_board, address, **options)
        expect(seen.frame.locator(VIEWS.get(view, "section.account")).first).to_be_visible(timeout=PATIENCE)
        return seen

    return open_view


@pytest.fixture
def watched(visit: Callable[..., Visit], staged_board: str) -> Callable[[dict[str, object]], Visit]:
    """The live view over a made-up answer, so that what is drawn does not hang on a clock."""

    def open_live(answer: dict[str, object]) -> Visit:
        def made_up(page: Page) -> None:
            page.route("**/telemetry?*", lambda route: route.fulfill(json=answer))

        address = quote(f"watched/{EVENTS}", safe="") + "&p.tb_bottleneck.view=live"
        seen = visit(staged_board, address, before=made_up, viewport={"width": 1200, "height": 1400})
        expect(seen.frame.locator("section.telemetry")).to_be_visible(timeout=PATIENCE)
        return seen

    return open_live


@pytest.fixture
def opened(look, watched) -> Callable[[str], Visit]:
    """Opens a view where there is something to see in it."""

    def open_view(view: str) -> Visit:
        if view == "live":
            return watched(telemetry())
        return look(view, **({"run": "job", "source": "rank0.17.pt.trace.json"} if view == "ranks" else {}))

    return open_view


def overhang(seen: Visit) -> int:
    """By how many px the tab is wider than what is seen of it."""
    return int(seen.frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def extent(seen: Visit) -> str:
    """From when to when a view shows what it shows."""
    return seen.frame.locator(".controls .extent").inner_text()


AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
ASK_AXE = f"""axe.run(document, {RULES}).then(answer => answer.violations.map(
    one => ({{id: one.id, nodes: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))}})))"""


def violations(seen: Visit, dark: bool) -> list[dict[str, object]]:
    """What axe-core finds in the tab, in one of TensorBoard's themes."""
    if not AXE.exists():
        pytest.fail("axe-core is not there; run `npm ci --ignore-scripts` in frontend/")
    seen.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
    seen.page.wait_for_timeout(300)
    seen.frame.evaluate(AXE.read_text())
    found: list[dict[str, object]] = seen.frame.evaluate(ASK_AXE)
    return found
