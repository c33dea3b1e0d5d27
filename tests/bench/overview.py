"""Measures the overview and the list of trainings in Chromium: `python tests/bench/overview.py [--trainings 2000]`.

The demo's answer to `runs` is repeated under long names that begin alike, two recordings for each training. For each
action of a user the script prints the CPU time that the page spends in scripts, style and layout: in the longest frame,
and in all frames until the page is idle again. The times come from a trace of Chromium. On a busy machine the minimum
is the best estimate. `--against FOLDER` measures another build of the tab in turn with this one
(`npm run build -- --outdir FOLDER` in its frontend/).
"""

import argparse
import copy
import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from playwright.sync_api import Browser, Frame, Page, Route, sync_playwright  # noqa: E402

from tests.browser.boards import CHROMIUM, FLAGS, RECORDED, start_tensorboard  # noqa: E402

PATIENCE = 60_000  # ms
FIRST_MS, STEP_MS = 1_793_000_000_000, 3_600_000
BUDGET_MS = 8.0  # of a frame; 16.7 ms at 60 frames per second, less what the browser itself needs to draw one
ROWS = "article.overview tbody tr, nav.runs [role=option]"
COUNTED = {
    "EventDispatch",
    "EvaluateScript",
    "FireAnimationFrame",
    "FireIdleCallback",
    "FunctionCall",
    "Layout",
    "RunMicrotasks",
    "TimerFire",
    "UpdateLayoutTree",
}


def main() -> None:
    """Serves the demo, repeats its answer, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainings", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--against", type=Path, help="the folder of another build of the tab")
    options = parser.parse_args()
    with sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        address = start_tensorboard(stack, "--logdir", str(RECORDED))
        answer = json.dumps(many(demo_answer(address), options.trainings))
        print(f"{options.trainings:,} trainings, {len(answer) / 1e6:.2f} MB of JSON")
        builds = {"this build": None} | ({str(options.against): options.against} if options.against else {})
        shown = {name: opened(browser, address, answer, build) for name, build in builds.items()}
        measure(browser, shown, options.repeats, ACTIONS, BUDGET_MS, ROWS)


def demo_answer(address: str) -> dict[str, Any]:
    """Returns the list of the demo's recordings, once all of them are analysed."""
    while True:
        with urlopen(f"{address}/data/plugin/tb_bottleneck/runs") as response:
            answer: dict[str, Any] = json.load(response)
        if answer["runs"] and all(run["state"] == "done" for run in answer["runs"]):
            return answer
        time.sleep(1)


def many(answer: dict[str, Any], trainings: int) -> dict[str, Any]:
    """Returns the answer with so many trainings, in 40 folders, with names that begin alike."""
    runs: list[dict[str, Any]] = []
    grouped: list[dict[str, Any]] = []
    for number in range(trainings):
        training = answer["trainings"][number % len(answer["trainings"])]
        run = f"team/sweep{number // 50:02}/user1_resnet50_augmented_lr3e-4_bs256_seed{number:04}"
        grouped.append({**training, "members": list(range(len(runs), len(runs) + len(training["members"])))})
        for member in training["members"]:
            entry = copy.deepcopy(answer["runs"][member])
            telemetry = entry["evidence_source"] == "telemetry"
            at = FIRST_MS + STEP_MS * number
            entry["id"] = f"{number:08x}{member:08x}"
            entry["run"] = f"{run}/tb_bottleneck/20261121-110503_rank0_{number}" if telemetry else run
            source = f"events.out.tfevents.{at // 1000}.{number}.0"
            entry["source"] = source if telemetry else f"host_{number}.{at}.pt.trace.json.gz"
            runs.append(entry)
    return {**answer, "runs": runs, "trainings": grouped}


Shown = tuple[Page, Frame]
Action = Callable[[Frame, int], None]


def opened(browser: Browser, address: str, answer: str, build: Path | None) -> Shown:
    """Opens the overview with a fixed list of recordings; `build` is the folder of another build of the tab."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()

    def fulfil(route: Route) -> None:
        route.fulfill(body=answer, content_type="application/json")

    def replace(route: Route) -> None:
        assert build is not None
        route.fulfill(path=build / Path(route.request.url.partition("?")[0]).name, content_type="text/javascript")

    page.route("**/tb_bottleneck/runs", fulfil)
    if build is not None:
        page.route("**/tb_bottleneck/**/*.js*", replace)
    page.goto(f"{address}/#tb_bottleneck")
    frame = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached").content_frame()
    assert frame is not None
    frame.wait_for_selector("article.overview tbody tr", timeout=PATIENCE)
    return page, frame


def measure(
    browser: Browser, shown: dict[str, Shown], repeats: int, actions: dict[str, Action], budget_ms: float, counted: str
) -> None:
    """Prints one line for each action and build; `counted` selects the rows that are counted."""
    print("| action | build | longest frame: min, median (ms) | all frames: min, median (ms) | rows drawn |")
    print("|---|---|---|---|---|")
    for name, act in actions.items():
        frames: dict[str, list[list[float]]] = {build: [] for build in shown}
        for repeat in range(repeats):
            for build, (page, frame) in shown.items():
                frames[build].append(_frames(browser, page, act, frame, repeat))
        for build, (_, frame) in shown.items():
            longest, all_of_them = [max(each) for each in frames[build]], [sum(each) for each in frames[build]]
            rows = frame.locator(counted).count()
            mark = "" if min(longest) <= budget_ms else " over budget"
            print(f"| {name} | {build} | {_summary(longest)}{mark} | {_summary(all_of_them)} | {rows} |", flush=True)


def _summary(times: list[float]) -> str:
    return f"{min(times):.1f}, {statistics.median(times):.1f}"


def _frames(browser: Browser, page: Page, act: Action, frame: Frame, repeat: int) -> list[float]:
    """Returns the CPU time in scripts, style and layout of each frame, in ms."""
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    act(frame, repeat)
    page.wait_for_timeout(300)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {(one["pid"], one["tid"]) for one in events if one["name"] in COUNTED}
    return [sum_ for thread in threads for sum_ in _by_frame(events, thread)] or [0.0]


def _by_frame(events: list[dict[str, Any]], thread: tuple[int, int]) -> list[float]:
    """Returns the time of the counted events of a thread, without those within another one, in each frame."""
    own = [one for one in events if (one["pid"], one["tid"]) == thread and one["ph"] == "X"]
    times, counted_until = [0.0], 0.0
    for one in sorted(own, key=lambda one: (one["ts"], -one["dur"])):
        if one["name"] == "Layerize":  # the end of a frame
            times.append(0.0)
        elif one["name"] in COUNTED and one["ts"] >= counted_until:
            counted_until = one["ts"] + one["dur"]
            times[-1] += one.get("tdur", one["dur"]) / 1000
    return times


def typed(selector: str, *texts: str) -> Action:
    """Returns an action that sets the text of a field, another one each time."""

    def act(frame: Frame, repeat: int) -> None:
        script = """([selector, text]) => {
            const field = document.querySelector(selector);
            field.value = text;
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
        frame.evaluate(script, [selector, texts[repeat % len(texts)]])

    return act


def _chosen(label: str, *values: str) -> Action:
    def act(frame: Frame, repeat: int) -> None:
        script = """([label, value]) => {
            const labels = [...document.querySelectorAll("article.overview label")];
            const field = labels.find((each) => each.textContent.startsWith(label)).querySelector("select");
            field.value = value;
            field.dispatchEvent(new Event("change", { bubbles: true }));
        }"""
        frame.evaluate(script, [label, values[repeat % len(values)]])

    return act


def clicked(selector: str) -> Action:
    """Returns an action that clicks on the first such element."""

    def act(frame: Frame, _: int) -> None:
        frame.evaluate("selector => document.querySelector(selector)?.click()", selector)

    return act


def _scrolled(frame: Frame, repeat: int) -> None:
    frame.evaluate("top => { document.querySelector('nav.runs .listbox').scrollTop = top; }", 500 * (repeat + 1))


ACTIONS: dict[str, Action] = {
    "nothing": lambda frame, repeat: None,
    "a letter in the overview's filter": typed(".filters input", "s", "se", "see", "seed", "seed1", "seed12", ""),
    "a severity": clicked(".severities button"),
    "a verdict": _chosen("Verdict", "input", ""),
    "a time": _chosen("Recorded", "week", "month", ""),
    "another order": clicked("article.overview thead th:nth-child(3) button"),
    "groups by folder": _chosen("Group by", "folder", ""),
    "scrolling the list by 500 px": _scrolled,
    "a letter in the list's filter": typed("nav.runs input", "s", "se", "see", "seed", "seed1", "seed12", ""),
}

if __name__ == "__main__":
    main()
