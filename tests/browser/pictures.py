"""Takes the pictures of the tab that README shows: `python tests/browser/pictures.py [FOLDER]`.

A real TensorBoard over simulated recordings (stage.py), seen by Chromium. Colours are reduced so that the files stay
small. Where nothing of the tab changed, the same pictures come out but for times of day.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from PIL import Image  # noqa: E402  # TensorBoard brings it along
from playwright.sync_api import Browser, Frame, Page, sync_playwright  # noqa: E402

from tests.browser.conftest import CHROMIUM, FLAGS, start_tensorboard  # noqa: E402
from tests.browser.stage import NAME, stage, telemetry  # noqa: E402

TARGET = CHECKOUT / "frontend" / "pictures"
COLOURS = 256
PATIENCE = 60_000  # ms
WIDE, NARROW = (1280, 860), (390, 844)


def main(target: Path) -> None:
    """Takes all of them."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        address = start_tensorboard(stack, "--logdir", str(stage(Path(scratch), hostile=False)))
        for name, take in PICTURES.items():
            _save(take(browser, address), target / f"{name}.png")


def _open(
    browser: Browser, address: str, view: str, run: str, size: tuple[int, int] = WIDE, source: str = NAME
) -> tuple[Page, Frame]:
    page = browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
    if view == "live":
        page.route("**/tb_bottleneck/runs", _as_telemetry)
        page.route("**/telemetry?*", lambda route: route.fulfill(json=telemetry()))
    chosen = quote(f"{run}/{source}", safe="")
    page.goto(f"{address}/#tb_bottleneck&p.tb_bottleneck.run={chosen}&p.tb_bottleneck.view={view}")
    frame = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached").content_frame()
    assert frame is not None
    frame.wait_for_selector("article .panel", timeout=PATIENCE)
    while "analysed" in frame.locator("nav.runs header").inner_text():
        page.wait_for_timeout(500)
    frame.wait_for_function("!document.querySelector('.awaited')", timeout=PATIENCE)
    return page, frame


def _as_telemetry(route) -> None:  # type: ignore[no-untyped-def]
    content = route.fetch().json()
    for entry in content["runs"]:
        entry |= {"witness": "telemetry", "live": True}
    route.fulfill(json=content)


def _taken(page: Page) -> bytes:
    page.wait_for_timeout(1_500)  # tiles arrive
    picture = page.screenshot()
    page.context.close()
    return picture


def _plain(view: str, run: str, **options: object) -> Callable[[Browser, str], bytes]:
    def take(browser: Browser, address: str) -> bytes:
        return _taken(_open(browser, address, view, run, **options)[0])  # type: ignore[arg-type]

    return take


def _evidence(dark: bool) -> Callable[[Browser, str], bytes]:
    def take(browser: Browser, address: str) -> bytes:
        page, frame = _open(browser, address, "diagnosis", "starved")
        page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
        frame.locator("button.link", has_text="for example").first.click()
        frame.wait_for_selector("section.timeline canvas", timeout=PATIENCE)
        return _taken(page)

    return take


def _plan(browser: Browser, address: str) -> bytes:
    page, frame = _open(browser, address, "diagnosis", "starved")
    frame.locator("section.finding").first.evaluate("element => window.scrollTo(0, element.offsetTop - 110)")
    return _taken(page)


PICTURES = {
    "diagnosis": _plain("diagnosis", "starved"),
    "fix": _plan,
    "timeline": _evidence(dark=False),
    "timeline_dark": _evidence(dark=True),
    "what_ran": _plain("tables", "checkpoints"),
    "roofline": _plain("roofline", "shapes"),
    "ranks": _plain("ranks", "job", source="rank0.17.pt.trace.json"),
    "telemetry": _plain("live", "starved"),
    "narrow": _plain("diagnosis", "starved", size=NARROW),
}


def _save(picture: bytes, path: Path) -> None:
    small = (
        Image.open(io.BytesIO(picture))
        .convert("RGB")
        .quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    small.save(path, optimize=True)
    print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
