"""Measures the breakdown in Chromium: `python tests/bench/breakdown.py TRACE [--repeats 7]`.

For each action in its flame graph and in its tree table the script prints the CPU time that the page spends in scripts,
style and layout: in the longest frame, and in all frames until the page is idle again (see overview.py). A reference
loop of the same length on every machine tells how slow this one is.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from playwright.sync_api import Frame, sync_playwright  # noqa: E402

from tests.bench.overview import PATIENCE, Action, clicked, measure, typed  # noqa: E402
from tests.browser.boards import CHROMIUM, FLAGS, start_tensorboard  # noqa: E402

NAME = "large.1.pt.trace.json.gz"
ROWS = "#panel .tree-table tbody tr"
CANVAS = ".flame canvas"
BUDGET_MS = 16.0


def main() -> None:
    """Serves the trace and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, ExitStack() as stack:
        folder = Path(scratch) / "run"
        folder.mkdir()
        shutil.copy(options.trace, folder / NAME)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        address = start_tensorboard(stack, "--logdir", scratch)
        for by in ("module", "operator"):
            for view, drawn, actions in (("", ROWS, TABLE), ("&flame=1", CANVAS, FLAME)):
                page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
                place = f"p.tb_bottleneck.tree={quote(f'by={by}{view}', safe='')}"
                run = quote(f"run/{NAME}", safe="")
                page.goto(f"{address}/#tb_bottleneck&p.tb_bottleneck.run={run}&p.tb_bottleneck.view=tree&{place}")
                frame = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached").content_frame()
                assert frame is not None
                frame.wait_for_selector(drawn, timeout=PATIENCE)
                print(f"\nBy {by}; reference loop {reference():.2f} s\n")
                measure(browser, {"this build": (page, frame)}, options.repeats, actions, BUDGET_MS, ROWS)
                page.context.close()


def reference() -> float:
    """Returns the CPU time of a fixed loop in seconds: 0.65 on an ordinary machine of 2026."""
    begin, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number * number % 7
    return time.process_time() - begin


def _pointer(kind: str, *places: float) -> Action:
    """Returns an action of the pointer on the flame graph, at a place of its width and its middle row."""

    def act(frame: Frame, repeat: int) -> None:
        script = """([selector, kind, place]) => {
            const box = document.querySelector(selector).getBoundingClientRect();
            const at = { clientX: box.x + box.width * place, clientY: box.y + 30, bubbles: true };
            document.querySelector(selector).dispatchEvent(new PointerEvent(kind, at));
        }"""
        frame.evaluate(script, [CANVAS, kind, places[repeat % len(places)]])

    return act


def _in_turn(*actions: Callable[[Frame, int], None]) -> Action:
    return lambda frame, repeat: actions[repeat % len(actions)](frame, repeat)


LETTERS = ("a", "at", "ate", "aten", "aten:", "aten::mul", "")
TABLE: dict[str, Action] = {
    "opening and closing a row": clicked(f"{ROWS}[aria-level='2'][aria-expanded] .toggle"),
    "choosing a row": _in_turn(clicked(f"{ROWS}:nth-child(3)"), clicked(f"{ROWS}:nth-child(2)")),
    "a letter in the search": typed("#panel input[type=search]", *LETTERS),
    "closing and opening all rows": clicked(f"{ROWS} .toggle"),
}
FLAME: dict[str, Action] = {
    "moving the pointer": _pointer("pointermove", 0.1, 0.3, 0.5, 0.7, 0.9),
    "zooming in and out": _in_turn(_pointer("click", 0.7), clicked(".flame p button")),
    "a letter in the search": typed("#panel input[type=search]", *LETTERS),
}

if __name__ == "__main__":
    main()
