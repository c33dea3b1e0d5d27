"""Walks through every view of the tab: `python tests/browser/walk.py FOLDER [VIEW ...]`.

Each view is opened in a real TensorBoard, at 390, 768, 1400 and 2560 px, light and dark. The folder gets a picture of
each, to be looked at. The script prints what axe-core finds (WCAG 2 A and AA, best practice), how many px the page is
too wide, and errors of the page, and fails if there is any. It takes about five minutes.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from playwright.sync_api import Browser, Frame, Page, sync_playwright  # noqa: E402

from tb_bottleneck.review.notes import Action  # noqa: E402
from tb_bottleneck.review.store import NoteWriter  # noqa: E402
from tests.browser.accessibility import ASK_AXE, AXE  # noqa: E402
from tests.browser.boards import CHROMIUM, FLAGS, RECORDED, start_tensorboard  # noqa: E402
from tests.browser.stage import EVENTS, NAME, WORKERS, in_rows, stage, telemetry  # noqa: E402

PATIENCE = 120_000  # ms
SIZES = ((390, 844), (768, 1024), (1400, 900), (2560, 1440))
TALLEST = 4_000  # px of a picture; a page may be longer
SERIES = ",".join(quote(f"sweep/w{number}/{NAME}", safe="") for number in WORKERS)
FINISH = (
    "document.getAnimations().forEach(one => { if (one.effect.getComputedTiming().endTime < Infinity) one.finish(); })"
)
OVERHANG = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HEIGHT = "document.documentElement.scrollHeight"


def _nothing(frame: Frame) -> None:
    """The view is shown as it opens."""


@dataclass(frozen=True)
class Stop:
    """A view of one of the logdirs: its address, what it shows once drawn, and what is done before the picture."""

    board: str
    drawn: str
    run: str = ""  # with the recording; "" opens the tab without an address
    more: str = ""  # of the address
    act: Callable[[Frame], None] = field(default=_nothing)


def _clicked(selector: str) -> Callable[[Frame], None]:
    return lambda frame: frame.locator(selector).first.click()


def _chosen(label: str, value: str) -> Callable[[Frame], None]:
    return lambda frame: frame.get_by_label(label).first.select_option(value) and None


def _staged(run: str, view: str, drawn: str, source: str = NAME, **more: object) -> Stop:
    return Stop("staged", drawn, f"{run}/{source}", f"&p.tb_bottleneck.view={view}", **more)  # type: ignore[arg-type]


STOPS = {
    "overview": Stop("demo", "article.overview tbody tr"),
    "overview_groups": Stop("demo", "article.overview tbody tr", act=_chosen("Group by", "verdict")),
    "overview_columns": Stop("demo", "article.overview tbody tr", act=_clicked(".columns-chosen summary")),
    "overview_reviewed": Stop("reviewed", "article.overview table[aria-label='Ledger of fixes'] tbody tr"),
    "diagnosis": Stop("demo", "section.account", "loader_in_main_process/slow"),
    "diagnosis_healthy": Stop("demo", "section.account", "checkpointing/fixed"),
    "diagnosis_memory": Stop("demo", "section.account", "retained_graph/slow"),
    "diagnosis_reviewed": Stop("reviewed", "section.account", f"starved/{NAME}"),
    "telemetry_diagnosis": Stop("staged", "section.account", f"watched/{EVENTS}"),
    "unreadable": Stop("staged", "article", f"bad/{NAME}"),
    "incomplete": Stop("staged", "article", f"short/{NAME}"),
    "vanished": Stop("staged", "section.empty", f"gone/{NAME}"),
    "empty": Stop("empty", "section.empty"),
    "shortcuts": Stop("staged", "dialog[open]", f"starved/{NAME}"),
    "tree": _staged("starved", "tree", "#panel .tree-table"),
    "timeline": _staged("starved", "timeline", "section.timeline canvas"),
    "kernels": _staged("shapes", "tree&p.tb_bottleneck.tree=by%3Dkernel", "#panel .tree-table"),
    "memory": _staged("leak", "memory", "#panel .memory"),
    "job": _staged("job", "job", "section.heat-map canvas", source="rank0.17.pt.trace.json"),
    "live": _staged("watched", "live", "section.telemetry", source=EVENTS),
    "compare_choice": _staged("starved", "compare", "#panel"),
    "compare": _staged(
        "starved", f"compare&p.tb_bottleneck.with={quote(f'reads/{NAME}', safe='')}", "section.waterfall"
    ),
    "series": Stop(
        "rows",
        ".series-points svg",
        f"sweep/w1/{NAME}",
        f"&p.tb_bottleneck.view=compare&p.tb_bottleneck.row={quote(SERIES, safe='')}",
    ),
    "what_if": Stop(
        "rows",
        "section.waterfall",
        f"sweep/w1/{NAME}",
        "&p.tb_bottleneck.view=compare&p.tb_bottleneck.if=device%3DH200%2BSXM%26workers%3D4",
    ),
}


def main(target: Path, names: list[str]) -> int:
    """Takes the pictures and prints the findings; returns their number."""
    target.mkdir(parents=True, exist_ok=True)
    found = 0
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        boards = _Boards(stack, Path(scratch))
        for name in names or STOPS:
            problems = _walk(browser, boards.address(STOPS[name].board), name, target)
            found += len(problems)
            print(f"{name}: {'; '.join(problems) or 'nothing found'}", flush=True)
    return found


class _Boards:
    """TensorBoards by name, started when they are needed."""

    def __init__(self, stack: ExitStack, scratch: Path) -> None:
        self._stack, self._scratch = stack, scratch
        self._addresses: dict[str, str] = {}

    def address(self, name: str) -> str:
        if name not in self._addresses:
            self._addresses[name] = start_tensorboard(self._stack, "--logdir", str(self._logdir(name)))
        return self._addresses[name]

    def _logdir(self, name: str) -> Path:
        folder = self._scratch / name
        folder.mkdir()
        return {
            "demo": lambda _: RECORDED,
            "staged": stage,
            "rows": in_rows,
            "reviewed": _reviewed,
            "empty": lambda at: at,
        }[name](folder)


def _reviewed(folder: Path) -> Path:
    stage(folder, untrusted_names=False)
    notes = NoteWriter(str(folder), "Ana")
    notes.write(Action.FIXED, "reads", cause="scalar_reads", fixed_in="checkpoints")
    notes.write(Action.ACCEPT, "starved", cause="loader_in_main_process", text="only for debugging")
    notes.write(Action.COMMENT, "starved", cause="loader_in_main_process", text="Seen on both clusters.")
    notes.write(Action.OWN, "starved", text="Ben")
    notes.write(Action.BASELINE, "checkpoints", text=".")
    notes.close()
    return folder


def _walk(browser: Browser, address: str, name: str, target: Path) -> list[str]:
    stop = STOPS[name]
    problems: list[str] = []
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    if "view=live" in stop.more:
        page.route("**/telemetry?*", lambda route: route.fulfill(json=telemetry()))
    frame = _opened(page, address, stop, name)
    for width, height in SIZES:
        for dark in (False, True):
            at = f"{width} px, {'dark' if dark else 'light'}"
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
            page.wait_for_timeout(300)
            frame.evaluate(FINISH)
            problems += [f"{at}: {one['id']} {one['nodes']}" for one in frame.evaluate(ASK_AXE)]
            if (wider := frame.evaluate(OVERHANG)) > 0:
                problems.append(f"{at}: {wider} px too wide")
            if name != "timeline":  # it fills the window
                chrome = page.evaluate("innerHeight") - frame.evaluate("innerHeight")
                page.set_viewport_size(
                    {"width": width, "height": min(max(height, frame.evaluate(HEIGHT) + chrome), TALLEST)}
                )
                page.wait_for_timeout(300)
            page.screenshot(path=target / f"{name}_{width}_{'dark' if dark else 'light'}.png")
    page.unroute_all(behavior="ignoreErrors")
    page.context.close()
    return problems


def _opened(page: Page, address: str, stop: Stop, name: str) -> Frame:
    run = f"&p.tb_bottleneck.run={quote(_recording(address, stop.run), safe='')}" if stop.run else ""
    page.goto(f"{address}/#tb_bottleneck{run}{stop.more}")
    frame = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached").content_frame()
    assert frame is not None
    if name == "shortcuts":
        frame.locator(".shortcuts-button").click()
    frame.wait_for_selector(stop.drawn, timeout=PATIENCE)
    frame.wait_for_function("!document.querySelector('.request.delayed, progress')", timeout=PATIENCE)
    stop.act(frame)
    frame.evaluate(AXE.read_text())
    return frame


def _recording(address: str, run: str) -> str:
    """Returns the key of a recording; a run of the demo stands for its trace, whose file name contains a time."""
    folder = RECORDED / run
    return f"{run}/{next(folder.glob('*.trace.json*')).name}" if folder.is_dir() else run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("views", nargs="*", choices=[[], *STOPS], default=[], metavar="VIEW", help=", ".join(STOPS))
    options = parser.parse_args()
    sys.exit(1 if main(options.folder, options.views) else 0)
