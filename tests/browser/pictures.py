"""Takes the pictures of the tab that README shows: `python tests/browser/pictures.py [FOLDER]`.

Chromium opens a real TensorBoard with simulated recordings (stage.py). Colours are reduced to keep the files small: the
common ones are unchanged, and those at the edges of letters and lines become the nearest one. If the tab has not
changed, the pictures are the same except for times of day.
"""

import argparse
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

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from PIL import Image  # noqa: E402  # TensorBoard brings it along
from playwright.sync_api import Browser, Frame, Page, sync_playwright  # noqa: E402
from simulate.jobs.as_traces import write_traces  # noqa: E402
from simulate.jobs.execution import execute  # noqa: E402
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape  # noqa: E402

from tests.browser.boards import CHROMIUM, FLAGS, start_tensorboard  # noqa: E402
from tests.browser.stage import EVENTS, NAME, WORKERS, in_rows, on_two_devices, stage, telemetry  # noqa: E402

COLOURS, COMMON = 256, 176
Colours, Counts = npt.NDArray[np.int64], npt.NDArray[np.int64]
TARGET = CHECKOUT / "frontend" / "pictures"
PATIENCE = 60_000  # ms
WIDE, NARROW = (1280, 860), (390, 844)


def main(target: Path) -> None:
    """Takes all pictures."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        address = start_tensorboard(stack, "--logdir", str(stage(Path(scratch), untrusted_names=False)))
        for name, take in PICTURES.items():
            _save(take(browser, address), target / f"{name}.png")


def _open(
    browser: Browser, address: str, view: str, run: str, size: tuple[int, int] = WIDE, source: str = NAME
) -> tuple[Page, Frame]:
    page = browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
    if view == "live":
        page.route("**/telemetry?*", lambda route: route.fulfill(json=telemetry()))
    chosen = quote(f"{run}/{source}", safe="")
    page.goto(f"{address}/#tb_bottleneck&p.tb_bottleneck.run={chosen}&p.tb_bottleneck.view={view}")
    frame = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached").content_frame()
    assert frame is not None
    frame.wait_for_selector("article .panel", timeout=PATIENCE)
    while "analysed" in frame.locator("nav.runs .count").inner_text():
        page.wait_for_timeout(500)
    frame.wait_for_function("!document.querySelector('.request')", timeout=PATIENCE)
    return page, frame


def _taken(page: Page) -> bytes:
    page.wait_for_timeout(1_500)  # tiles arrive
    picture = page.screenshot()
    page.unroute_all(behavior="ignoreErrors")
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


def _compared(browser: Browser, _: str) -> bytes:
    """Shows one training on two devices, in a separate TensorBoard with only these in the list."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        address = start_tensorboard(stack, "--logdir", str(on_two_devices(Path(scratch))))
        with_a = f"&p.tb_bottleneck.with={quote(f'a100/{NAME}', safe='')}"
        page, frame = _open(browser, address, f"compare{with_a}", "h200", size=(1280, 1480))
        frame.wait_for_selector("section.expected", timeout=PATIENCE)
        return _taken(page)


def _job(browser: Browser, _: str) -> bytes:
    """Shows a job of eight ranks, one of which waits for its data, in a separate TensorBoard."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        program = TOPOLOGIES["data"](Shape(ranks=8, steps=8, seed=1), Faults(input={5: 0.5}))
        write_traces(program, execute(program), Path(scratch) / "resnet50_8gpus")
        address = start_tensorboard(stack, "--logdir", scratch)
        page, frame = _open(browser, address, "job", "resnet50_8gpus", size=(1280, 1240), source="rank0.pt.trace.json")
        frame.wait_for_selector("section.heat-map canvas", timeout=PATIENCE)
        return _taken(page)


def _in_rows(about: str, run: str, size: tuple[int, int], drawn: str) -> Callable[[Browser, str], bytes]:
    """Shows a series of recordings, in a separate TensorBoard; `about` is the view's part of the address."""

    def take(browser: Browser, _: str) -> bytes:
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            address = start_tensorboard(stack, "--logdir", str(in_rows(Path(scratch), untrusted_names=False)))
            page, frame = _open(browser, address, about, run, size=size)
            frame.wait_for_selector(drawn, timeout=PATIENCE)
            return _taken(page)

    return take


def _overview(browser: Browser, _: str) -> bytes:
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        address = start_tensorboard(stack, "--logdir", str(in_rows(Path(scratch), untrusted_names=False)))
        page, frame = _open(browser, address, "diagnosis", "sweep/w1")
        frame.get_by_role("button", name="Overview of all trainings").click()
        frame.wait_for_selector("article.overview tbody tr", timeout=PATIENCE)
        return _taken(page)


def _row(*runs: str) -> str:
    """Returns a series of recordings in the form of the address."""
    return "&p.tb_bottleneck.row=" + quote(",".join(quote(f"{run}/{NAME}", safe="") for run in runs), safe="")


_SWEEP = [f"sweep/w{number}" for number in WORKERS]
_SUPPOSED = "&p.tb_bottleneck.if=" + quote("device=H200+SXM&workers=4", safe="")

PICTURES = {
    "overview": _overview,
    "diagnosis": _plain("diagnosis", "starved"),
    "fix": _plan,
    "timeline": _evidence(dark=False),
    "timeline_dark": _evidence(dark=True),
    "where": _plain("tree", "checkpoints"),
    "job": _job,
    "telemetry": _plain("live", "watched", source=EVENTS),
    "over_time": _plain("diagnosis", "watched", source=EVENTS),
    "compare": _compared,
    "series": _in_rows(f"compare{_row(*_SWEEP)}", "sweep/w1", (1280, 1370), ".series-points svg"),
    "what_if": _in_rows(f"compare{_SUPPOSED}", "sweep/w1", (1280, 1400), "section.waterfall"),
    "narrow": _plain("diagnosis", "starved", size=NARROW),
}


def _save(picture: bytes, path: Path) -> None:
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    found, places, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    palette = found[_most_used(found.astype(np.int64), counts)]
    nearest = np.array(
        [np.argmin(((palette.astype(np.int64) - one) ** 2).sum(axis=1)) for one in found.astype(np.int64)]
    )
    small = Image.fromarray(nearest[places].astype(np.uint8).reshape(pixels.shape[:2]), "P")
    small.putpalette(palette.tobytes())
    small.save(path, optimize=True)
    print(f"{path}  {path.stat().st_size:,} bytes")


def _most_used(colours: Colours, counts: Counts) -> list[int]:
    """Returns positions of the colours to keep: the most common ones, then always the one farthest from those kept."""
    kept = [int(place) for place in np.argsort(-counts)[:COMMON]]
    away = np.full(len(colours), np.iinfo(np.int64).max)
    for place in kept:
        away = np.minimum(away, ((colours - colours[place]) ** 2).sum(axis=1))
    while len(kept) < min(COLOURS, len(colours)):
        farthest = int(np.argmax(away * np.sqrt(counts)))
        kept.append(farthest)
        away = np.minimum(away, ((colours - colours[farthest]) ** 2).sum(axis=1))
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Takes the pictures of the tab that README shows.")
    parser.add_argument("folder", nargs="?", type=Path, default=TARGET, help="where to (default: frontend/pictures)")
    main(parser.parse_args().folder)
