"""Pages of TensorBoard with our tab: idle ones that tests share, and one that a test looks at."""

from dataclasses import dataclass, field

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Frame, Page, ViewportSize

PATIENCE = 60_000  # ms; only a busy machine needs this long
FOR_ALL = 5 * PATIENCE  # until all recordings of the demo are analysed, which takes one process 22 s
VIEWPORT: ViewportSize = {"width": 1280, "height": 720}  # Playwright's own default
VIEWS = {
    "tree": "#panel .tree-table",
    "timeline": "section.timeline canvas",
    "memory": "#panel .memory",
    "job": "section.heat-map canvas",
    "live": "section.telemetry",
}
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


def overhang(seen: Visit) -> int:
    """Returns how many px the tab is wider than its visible part."""
    return int(seen.frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def extent(seen: Visit) -> str:
    """Returns the time range that a view shows."""
    return seen.frame.locator(".controls .extent").inner_text()
