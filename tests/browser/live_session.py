"""Records a live session: `python tests/browser/live_session.py [FOLDER]`.

A small training on the CPU is monitored while its loader becomes slow and then fast again. Two TensorBoards show it,
one with each of TensorBoard's loaders. Each change of the tab's state (live, phases, verdict) is printed with its time.
At the end of each part, pictures of the page are taken, light and dark. It takes about four minutes.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from tests.browser.boards import CHROMIUM, FLAGS, end, start_tensorboard  # noqa: E402

PARTS = ("healthy", "starved", "healthy again")
PART_SECONDS = 60  # of each part; windows of telemetry are ten seconds long
LOOK_SECONDS = 2.0
OVER_SECONDS = 45
# Samples are there already, so that a fetch takes a tenth of a millisecond; in the second part each takes long.
TRAINING = f"""
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset
from tb_bottleneck import Monitor

BEGAN = time.monotonic()

def part():
    return int((time.monotonic() - BEGAN) / {PART_SECONDS})

class Samples(Dataset):
    def __init__(self):
        self.inputs, self.labels = torch.randn(64, 512), torch.arange(64) % 10
    def __len__(self):
        return 10**6
    def __getitems__(self, indices):
        if part() == 1:
            time.sleep(0.025)
        return [(self.inputs[index % 64], self.labels[index % 64]) for index in indices]

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(),
                            torch.nn.Linear(2048, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("training", flush=True)
BEGAN = time.monotonic()
with Monitor(sys.argv[1], captures=0):
    for inputs, labels in DataLoader(Samples(), 64):
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if part() >= {len(PARTS)}:
            break
"""


class Board:
    """One TensorBoard that shows the session."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self._said = ""

    def look(self, since: float) -> None:
        """Prints the state of the tab if it has changed; times are seconds since the start."""
        said = result(self.address, since)
        if said != self._said:
            print(f"{time.time() - since:6.1f} s, {self.name}: {said}", flush=True)
            self._said = said


def main(target: Path) -> None:
    """Trains, polls the tab, prints and takes the pictures."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as logdir, sync_playwright() as playwright, ExitStack() as stack:
        boards = [
            Board(name, start_tensorboard(stack, "--logdir", logdir, "--reload_interval", "2", *flags))
            for name, flags in (("fast loader", ()), ("Python loader", ("--load_fast=false",)))
        ]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        stack.callback(browser.close)
        training = subprocess.Popen([sys.executable, "-c", TRAINING, logdir], stdout=subprocess.PIPE)
        stack.callback(end, training)
        assert training.stdout is not None
        training.stdout.readline()
        began = time.time()
        for number, part in enumerate(PARTS, 1):
            watch(boards, began, began + number * PART_SECONDS - 10)
            for name, loader, scheme in pictures(part):
                picture(browser, boards[loader], scheme, target / name)
        print(f"{time.time() - began:6.1f} s, the training ends", flush=True)
        training.wait()
        watch(boards, began, time.time() + OVER_SECONDS)
        for name, loader, scheme in pictures("over"):
            picture(browser, boards[loader], scheme, target / name)


def watch(boards: list[Board], since: float, until: float) -> None:
    """Polls the tab."""
    while time.time() < until:
        for board in boards:
            board.look(since)
        time.sleep(LOOK_SECONDS)


def pictures(part: str) -> Iterator[tuple[str, int, str]]:
    """Returns (file, board, colour scheme) at the end of a part: each loader in one of the schemes."""
    yield f"{part.replace(' ', '_')}_fast_loader_light.png", 0, "light"
    yield f"{part.replace(' ', '_')}_python_loader_dark.png", 1, "dark"


def picture(browser: Browser, board: Board, scheme: Any, target: Path) -> None:
    """The tab's Telemetry view of the run."""
    page = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 1000}).new_page()
    (run,) = recordings(board.address)
    chosen = quote(f"{run['run']}/{run['source']}", safe="")
    dark = "&darkMode=true" if scheme == "dark" else ""
    page.goto(f"{board.address}/?{dark}#tb_bottleneck&p.tb_bottleneck.run={chosen}&p.tb_bottleneck.view=live")
    page.wait_for_timeout(6000)
    page.screenshot(path=target)
    page.context.close()


def result(address: str, since: float) -> str:
    """Returns the state of the run in our tab and in the Scalars tab."""
    found = recordings(address)
    if not found:
        return "no run yet"
    (run,) = found
    answer = asked(address, f"telemetry?id={run['id']}&points=100")
    bands = ", ".join(
        f"{(band['begin_unix_ns'] / 1e9 - since):.0f} to {(band['end_unix_ns'] / 1e9 - since) // 10 * 10:.0f} s "
        f"{band['regime']} ({band['severity']})"
        for band in answer["bands"]
    )
    tags = [tag for found in fetch(f"{address}/data/plugin/scalars/tags").values() for tag in found]
    verdict = run.get("verdict", {})
    said = f"{verdict['regime']} ({verdict['severity']})" if verdict else "none yet"
    return f"live {run['live']}; phases {bands or 'none'}; verdict {said}; {len(tags)} scalars"


def recordings(address: str) -> list[dict[str, Any]]:
    """Returns the judged entries of the tab's list."""
    return [run for run in asked(address, "runs")["runs"] if run["state"] == "done"]


def asked(address: str, route: str) -> Any:
    """Returns the answer of one of the plugin's routes."""
    return fetch(f"{address}/data/plugin/tb_bottleneck/{route}")


def fetch(address: str) -> Any:
    """Returns the JSON at an address."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("live_session"))
