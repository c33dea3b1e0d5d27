"""Measures the tab in a real TensorBoard and a real Chromium: `python tests/bench/tab.py --help`.

Prints the size of the bundle, the time from the page to the first answer, frames per second while the timeline of a
large trace is dragged, the cost of a long list of recordings, and the size of telemetry responses. Chromium runs
without a GPU, so the frame rate is a lower bound.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests"), str(HERE)]

from helpers.draw import drawn  # noqa: E402
from helpers.simulated_telemetry import simulate  # noqa: E402
from helpers.telemetry_files import NAME, write  # noqa: E402
from helpers.telemetry_problems import simulated_phase  # noqa: E402
from playwright.sync_api import Browser, Frame, Page, sync_playwright  # noqa: E402
from simulate.kineto import DIALECTS, Recording, kineto_json  # noqa: E402
from simulate.machine import Machine  # noqa: E402
from simulate.problems import PROBLEMS  # noqa: E402
from simulate.training import program_of  # noqa: E402
from tile import tile  # noqa: E402

from tb_bottleneck.plugin.http.static_files import DIRECTORY, ENTRY  # noqa: E402
from tests.browser.boards import CHROMIUM, FLAGS, start_tensorboard  # noqa: E402

EVENTS, RUNS, REPEATS, HOUR_S = 1_000_000, 1_000, 5, 3600
PATIENCE = 300_000  # ms
SMALL = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    op      ....##........##........##....
    gpu     ....abab......abab......abab..
"""
# Time of the first answer on the page, in ms since the tab's document began to load.
CLOCK = """
    new MutationObserver((_, self) => {
        if (!document.querySelector("nav.runs") || !document.querySelector("article h1")) return;
        self.disconnect();
        window.answeredAt = performance.now();
    }).observe(document, { childList: true, subtree: true });
"""
FRAMES = """async (act) => {
    const step = new Function("number", act);
    const times = [];
    await new Promise((done) => {
        const begin = performance.now();
        const next = (now) => {
            times.push(now);
            step(times.length);
            if (now - begin < 4000) requestAnimationFrame(next); else done();
        };
        requestAnimationFrame(next);
    });
    return times;
}"""
DRAG = """
    const canvas = document.querySelector("section.timeline canvas");
    const by = number % 120 < 60 ? 24 : -24;
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaX: by, bubbles: true, cancelable: true }));
"""
SCROLL = """
    const list = document.querySelector(".listbox");
    list.scrollTop = (number * 120) % (list.scrollHeight - list.clientHeight);
"""


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=EVENTS, help="events of the large trace (%(default)s)")
    options.add_argument("--runs", type=int, default=RUNS, help="recordings in the long list (%(default)s)")
    options.add_argument("--trace", type=Path, help="a trace to repeat; default: a simulated training")
    given = options.parse_args()
    if CHROMIUM is None:
        options.error("no Chromium was found on PATH; install it, or name it in the environment variable CHROMIUM")
    _bundle()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        folder = Path(scratch)
        events = _large(folder / "large" / "run" / "large.pt.trace.json", given.events, given.trace)
        address = start_tensorboard(stack, "--logdir", str(folder / "large"))
        _first_answer(browser, address)
        _pan(browser, address, events)
        _many(folder / "many", given.runs)
        _list(browser, start_tensorboard(stack, "--logdir", str(folder / "many")), given.runs)
        write(folder / "hour" / NAME, simulate([simulated_phase("healthy", HOUR_S)]))
        _telemetry(start_tensorboard(stack, "--logdir", str(folder / "hour")))


def _bundle() -> None:
    sizes = {path.name: path.stat().st_size for path in DIRECTORY.glob("*.js")}
    for views in (("recording", "efficiency"), ("overview",)):
        first: set[str] = set()
        waiting = [ENTRY, *(next(name for name in sizes if name.startswith(f"{view}-")) for view in views)]
        while waiting:
            name = waiting.pop()
            first.add(name)
            imported = re.findall(r'from"\./([\w.-]+\.js)"|import"\./([\w.-]+\.js)"', (DIRECTORY / name).read_text())
            waiting += [one or other for one, other in imported if (one or other) not in first]
        print(f"bundle: first screen ({views[0]}) {sum(sizes[name] for name in first):,} bytes in {len(first)} files")
    print(f"bundle: all of it {sum(sizes.values()):,} bytes in {len(sizes)}")


def _large(path: Path, wanted: int, source: Path | None) -> int:
    """Writes a trace with about the requested number of events; returns the exact number."""
    path.parent.mkdir(parents=True)
    if source is None:
        source = path.parents[1] / "small.json"
        run = Machine(program_of(PROBLEMS["loader in the main process"].make(11))).run()
        source.write_text(kineto_json(run, Recording(DIALECTS[3], stacks=True)))
    events = sum(event.get("ph") == "X" for event in json.loads(_text(source))["traceEvents"])
    times = max(1, round(wanted / events))
    tile(source, path, times)
    if source.parent == path.parents[1]:
        source.unlink()
    return events * times


def _text(path: Path) -> str:
    return gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()


def _open(browser: Browser, address: str, more: str = "") -> tuple[Page, Frame]:
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    context.add_init_script(CLOCK)
    page = context.new_page()
    page.goto(f"{address}/#tb_bottleneck{more}")
    frame = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached").content_frame()
    assert frame is not None
    return page, frame


def _first_answer(browser: Browser, address: str) -> None:
    page, frame = _open(browser, address)  # the first view includes the analysis
    frame.wait_for_selector("article .panel", timeout=PATIENCE)
    page.context.close()
    taken = []
    for _ in range(REPEATS):
        page, frame = _open(browser, address)
        frame.wait_for_function("window.answeredAt", timeout=PATIENCE)
        taken.append(float(frame.evaluate("window.answeredAt")))
        page.context.close()
    result = f"{statistics.median(taken):.0f} ms of the tab's page (median of {REPEATS}), at most {max(taken):.0f} ms"
    print(f"first answer of an analysed run: {result}")


def _pan(browser: Browser, address: str, events: int) -> None:
    began = time.monotonic()
    page, frame = _open(browser, address, "&p.tb_bottleneck.view=timeline")
    frame.wait_for_selector("section.timeline canvas", timeout=PATIENCE)
    page.wait_for_timeout(500)
    print(f"timeline of {events:,} events: opened in {time.monotonic() - began:.1f} s, the trace read anew")
    for zoom, presses in (("all of it", ["0"]), ("a 40th of it", ["0", *["+"] * 8]), ("some steps", [])):
        frame.locator(".strip .canvas").focus()
        for key in presses:
            page.keyboard.press(key)
        if zoom == "some steps":
            for _ in range(10):
                page.keyboard.press("+")
        page.wait_for_timeout(1_500)
        cold, warm = (_frames(frame, DRAG) for _ in range(2))
        print(f"  dragging, {zoom} in sight: first pass {cold}; second {warm}")
    page.context.close()


def _frames(frame: Frame, act: str) -> str:
    times = frame.evaluate(FRAMES, act)
    gaps = sorted(after - before for before, after in pairwise(times))
    rate = 1000 * len(gaps) / sum(gaps)
    return f"{rate:.0f} frames/s (95 % within {gaps[int(len(gaps) * 0.95)]:.0f} ms, worst {gaps[-1]:.0f} ms)"


def _many(folder: Path, runs: int) -> None:
    text = json.dumps(drawn(SMALL, 1000))
    for number in range(runs):
        path = folder / f"sweep {number // 8:03}" / f"host_{number % 8}.17.pt.trace.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (number, number))


def _list(browser: Browser, address: str, runs: int) -> None:
    page, frame = _open(browser, address)
    frame.wait_for_selector("nav.runs .option", timeout=PATIENCE)
    while "analysed" in frame.locator("nav.runs .count").inner_text():
        page.wait_for_timeout(1_000)
    rows = frame.locator("nav.runs [role=option]").count()
    print(f"{runs:,} recordings: {rows} rows in the page; scrolling {_frames(frame, SCROLL)}")
    typed = "document.querySelector('nav.runs input')"
    script = f"""async () => {{
        const input = {typed}, taken = [];
        for (const text of ["s", "sw", "swe", "sweep 1", "sweep 12", ""]) {{
            const begin = performance.now();
            input.value = text;
            input.dispatchEvent(new Event("input", {{ bubbles: true }}));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            taken.push(performance.now() - begin);
        }}
        return taken;
    }}"""
    taken = frame.evaluate(script)
    print(f"  a letter in the filter: {statistics.median(taken):.0f} ms (median), at most {max(taken):.0f} ms")
    before = time.monotonic()
    frame.locator("nav.runs [role=option]").nth(rows // 2).click()  # drawn wherever the list was scrolled to
    frame.wait_for_function("document.querySelector('nav.runs [aria-selected=true]')")
    print(f"  choosing another: {1000 * (time.monotonic() - before):.0f} ms")
    assert quote("sweep", safe="") in page.url
    page.context.close()


def _telemetry(address: str) -> None:
    """Measures the tab's requests: an hour at chart density, the last seconds, and a range in detail."""
    run = _ask(address, "runs")["runs"][0]
    about = f"telemetry?id={run['id']}&points="
    whole = _ask(address, f"{about}1000")
    last = max(series["unix_ns"][-1] for series in whole["series"])
    print("telemetry of an hour, bytes as they travel:", end="")
    for name, query in (
        ("all of it", "1000"),
        ("what was added", f"1000&since={last - 15e9:.0f}"),
        ("100 s in detail", f"2000&since={last - 200e9:.0f}&until={last - 100e9:.0f}"),
    ):
        print(f"  {name} {len(_travels(address, about + query)):,}", end="")
    print()


def _travels(address: str, route: str) -> bytes:
    url = f"{address}/data/plugin/tb_bottleneck/{route}"
    with urlopen(Request(url, headers={"Accept-Encoding": "gzip"})) as answer:
        return bytes(answer.read())


def _ask(address: str, route: str) -> Any:
    while True:
        answer = json.loads(gzip.decompress(_travels(address, route)))
        if route != "runs" or (answer["runs"] and all(run["state"] == "done" for run in answer["runs"])):
            return answer
        time.sleep(0.5)


if __name__ == "__main__":
    main()
