"""Fixtures: a real TensorBoard in a separate process, and a real Chromium."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import (
    Browser,
    Frame,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

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
PATIENCE = 60_000  # ms; only a busy machine needs this long
VIEWPORT: ViewportSize = {"width": 1280, "height": 720}  # Playwright's own default
VIEWS = {
    "tree": "#panel .tree-table",
    "timeline": "section.timeline canvas",
    "tables": "section.sortable table",
    "roofline": "#panel section",
    "memory": "#panel .memory",
    "job": "section.heat-map canvas",
    "live": "section.telemetry",
}
START_SECONDS, END_SECONDS = 60, 10
RECORDED = Path(__file__).parents[2] / "demo" / "recorded"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests; each uses a new context."""
    if CHROMIUM is None:
        pytest.fail("no Chromium was found on PATH; install it, or name it in the environment variable CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


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


@pytest.fixture(scope="session")
def recorded_board() -> Iterator[str]:
    """TensorBoard on the demo's recordings, with its default loader."""
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(RECORDED))


@pytest.fixture(scope="session")
def staged_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """TensorBoard on the stage (stage.py)."""
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(stage(tmp_path_factory.mktemp("stage"))))


class IdlePages:
    """Pages that show TensorBoard and that no test uses at the moment, at most one per address.

    Loading TensorBoard takes ten times the CPU time of loading our tab in it, so a test reuses a page if it can. The
    document of our tab is always a new one: an idle page has an empty one in its place.
    """

    def __init__(self) -> None:
        self._pages: dict[str, tuple[Page, str]] = {}

    def take(self, address: str) -> tuple[Page, str] | None:
        """Returns an idle page of the address and what its iframe has to load, or None if there is none."""
        return self._pages.pop(address, None)

    def put(self, address: str, page: Page) -> None:
        """Resets the page and keeps it; closes it if that fails or if a page of this address is kept already."""
        try:
            page.unroute_all(behavior="ignoreErrors")
            page.context.unroute_all(behavior="ignoreErrors")
            if address in self._pages:
                page.context.close()
                return
            source = str(page.evaluate(EMPTY_OUR_IFRAME))
            for other in page.context.pages:
                if other is not page:
                    other.close()
            page.context.clear_permissions()
            page.mouse.move(0, 0)
            self._pages[address] = page, source
        except PlaywrightError:
            page.context.close()

    def close(self, address: str) -> None:
        """Closes the page of a server that ends."""
        idle = self._pages.pop(address, None)
        if idle is not None:
            idle[0].context.close()


OUR_IFRAME = "iframe[src*='tb_bottleneck']"
EMPTY_OUR_IFRAME = f"""async () => {{
    const frame = document.querySelector("{OUR_IFRAME}");
    const source = frame.src;
    await new Promise(loaded => {{ frame.onload = loaded; frame.src = "about:blank"; }});
    localStorage.clear();
    sessionStorage.clear();
    document.body.classList.remove("dark-mode");
    return source;
}}"""
LOAD_OUR_IFRAME = """async ([fragment, source]) => {
    location.hash = fragment;
    const frame = document.querySelector("iframe[src='about:blank']");
    await new Promise(loaded => { frame.onload = loaded; frame.src = source; });
    frame.onload = null;
}"""


@pytest.fixture(scope="session")
def idle_pages() -> IdlePages:
    """The idle pages."""
    return IdlePages()


@pytest.fixture
def board(idle_pages: IdlePages) -> Iterator[Callable[..., str]]:
    """Starts a TensorBoard for one test, which ends with the test."""
    with ExitStack() as stack:

        def start(*flags: str) -> str:
            address = start_tensorboard(stack, *flags)
            stack.callback(idle_pages.close, address)
            return address

        yield start


@dataclass
class Visit:
    """A page of TensorBoard with our tab open, with its errors and its requests to other origins."""

    page: Page
    frame: Frame
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The text of the tab."""
        return self.frame.locator("body").inner_text()


@pytest.fixture
def visit(chromium: Browser, idle_pages: IdlePages) -> Iterator[Callable[..., Visit]]:
    """Opens the tab: `visit(address, run=..., **context options)`; `before` may prepare the page.

    A test that changes TensorBoard's own page or the browser's clock asks for a `fresh` page, which is closed after it.
    """
    with ExitStack() as stack:

        def open_tab(
            address: str,
            run: str = "",
            before: Callable[[Page], None] | None = None,
            fresh: bool = False,
            viewport: ViewportSize = VIEWPORT,
            permissions: Sequence[str] = (),
            **options: object,
        ) -> Visit:
            fresh = fresh or bool(options)
            idle = None if fresh else idle_pages.take(address)
            page = idle[0] if idle else chromium.new_context(**options).new_page()  # type: ignore[arg-type]
            if fresh:
                stack.callback(page.context.close)
                # A request still routed at the end of a test would fail in the next test.
                stack.callback(page.unroute_all, behavior="ignoreErrors")
            else:
                stack.callback(idle_pages.put, address, page)
            page.set_viewport_size(viewport)
            if permissions:
                page.context.grant_permissions(permissions)
            if before is not None:
                before(page)
            requests: list[str] = []
            errors: list[str] = []

            def note_request(request: Request) -> None:
                requests.append(request.url)

            def note_error(error: PlaywrightError) -> None:
                errors.append(str(error))

            page.on("request", note_request)
            page.on("pageerror", note_error)
            stack.callback(page.remove_listener, "request", note_request)
            stack.callback(page.remove_listener, "pageerror", note_error)
            fragment = "tb_bottleneck" + (f"&p.tb_bottleneck.run={run}" if run else "")
            if idle:
                page.evaluate(LOAD_OUR_IFRAME, [fragment, idle[1]])
            else:
                page.goto(f"{address}/#{fragment}")
            element = page.wait_for_selector(OUR_IFRAME, state="attached", timeout=30_000)
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
    """The live view with a fixed answer, so that the drawing does not depend on the clock."""

    def open_live(answer: dict[str, object], fresh: bool = False) -> Visit:
        def made_up(page: Page) -> None:
            page.route("**/telemetry?*", lambda route: route.fulfill(json=answer))

        address = quote(f"watched/{EVENTS}", safe="") + "&p.tb_bottleneck.view=live"
        viewport = {"width": 1200, "height": 1400}
        seen = visit(staged_board, address, before=made_up, fresh=fresh, viewport=viewport)
        expect(seen.frame.locator("section.telemetry")).to_be_visible(timeout=PATIENCE)
        return seen

    return open_live


@pytest.fixture
def opened(look, watched) -> Callable[[str], Visit]:
    """Opens a view with a run that has content in it."""

    def open_view(view: str) -> Visit:
        if view == "live":
            return watched(telemetry())
        runs = {"job": {"run": "job", "source": "rank0.17.pt.trace.json"}, "memory": {"run": "leak"}}
        return look(view, **runs.get(view, {}))

    return open_view


def overhang(seen: Visit) -> int:
    """Returns how many px the tab is wider than its visible part."""
    return int(seen.frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def extent(seen: Visit) -> str:
    """Returns the time range that a view shows."""
    return seen.frame.locator(".controls .extent").inner_text()


AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
ASK_AXE = f"""axe.run(document, {RULES}).then(answer => answer.violations.map(
    one => ({{id: one.id, nodes: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))}})))"""

# A text that fades in has too little contrast until it is there.
END_ANIMATIONS = """document.getAnimations().filter(one => one.effect.getComputedTiming().endTime < Infinity)
    .forEach(one => one.finish())"""


def violations(seen: Visit, dark: bool) -> list[dict[str, object]]:
    """Returns the violations that axe-core finds in the tab, in one of TensorBoard's themes."""
    if not AXE.exists():
        pytest.fail("axe-core is not there; run `npm ci --ignore-scripts` in frontend/")
    seen.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
    seen.page.wait_for_timeout(300)
    seen.frame.evaluate(END_ANIMATIONS)
    seen.frame.evaluate(AXE.read_text())
    found: list[dict[str, object]] = seen.frame.evaluate(ASK_AXE)
    return found
