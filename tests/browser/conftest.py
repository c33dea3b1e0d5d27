"""Fixtures: a real TensorBoard in a separate process, and a real Chromium."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Request, ViewportSize, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.browser.boards import CHROMIUM, FLAGS, RECORDED, start_tensorboard
from tests.browser.pages import LOAD_OUR_IFRAME, OUR_IFRAME, PATIENCE, VIEWPORT, VIEWS, IdlePages, Visit
from tests.browser.stage import EVENTS, NAME, stage, telemetry


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests; each uses a new context."""
    if CHROMIUM is None:
        pytest.fail("no Chromium was found on PATH; install it, or name it in the environment variable CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


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
