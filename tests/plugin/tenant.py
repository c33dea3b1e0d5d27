"""TensorBoard with our plugin, for the tests: the real WSGI application without a port."""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard.backend import application
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client, TestResponse

from tb_bottleneck.plugin.plugin import BottleneckPlugin
from tb_bottleneck.workers.ipc import WorkerLimits

FAKE = "tests.plugin.fake_analysis:analyse"
DATA = "/data/plugin/tb_bottleneck/"
PATIENCE_SECONDS = 30.0


class Tenant:
    """The plugin, created with a context like TensorBoard's. Close `plugin` after use."""

    def __init__(
        self, logdir: str | Path = "", *, spec: str = "", prefix: str = "", analyse: str = FAKE, **limits: Any
    ) -> None:
        context = TBContext(logdir=str(logdir), flags=argparse.Namespace(logdir_spec=spec), data_provider=None)
        self.plugin = BottleneckPlugin(context, analyse, WorkerLimits(**limits))
        self.client = Client(application.TensorBoardWSGI([self.plugin], path_prefix=prefix))
        self.prefix = prefix

    def get(self, route: str, **options: Any) -> TestResponse:
        """Returns the response of one of our routes to a GET, or to `options["method"]`."""
        return self.client.open(self.prefix + DATA + route, **options)

    def runs(self) -> dict[str, Any]:
        """Returns the run list."""
        return dict(json.loads(self.get("runs").data))

    def entry(self, source: str) -> dict[str, Any]:
        """Returns the list's entry of the recording with this file name."""
        (match,) = [entry for entry in self.runs()["runs"] if entry["source"] == source]
        return dict(match)

    def listed(self) -> list[dict[str, Any]]:
        """Returns the entries, once the first scan has ended."""
        return list(until(self.runs, lambda answer: answer["state"] == "ready")["runs"])

    def done(self, source: str) -> dict[str, Any]:
        """Returns the entry of this recording, once it has been analysed."""
        self.listed()
        return until(lambda: self.entry(source), lambda entry: entry["state"] == "done")

    def report(self, source: str) -> dict[str, Any]:
        """Returns the report of this recording, once there is one."""
        self.listed()
        return dict(self.ready(f"report?id={self.entry(source)['id']}").json["report"])

    def ready(self, route: str) -> TestResponse:
        """Returns the answer to a GET, once it is not pending."""
        return until(lambda: self.get(route), lambda response: response.status_code != 202)


def until(ask: Callable[[], Any], satisfied: Callable[[Any], bool]) -> Any:
    """Repeats `ask`, as a browser does, until its answer is as wanted; fails after PATIENCE_SECONDS."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not satisfied(answer := ask()):
        assert time.monotonic() < deadline, f"no answer is as wanted; the last one was {answer}"
        time.sleep(0.01)
    return answer


def record(path: Path, words: str = "ok", age: float = 0.0) -> Path:
    """Writes a recording with an instruction to the fake analysis, `age` seconds old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)
    written = 1_700_000_000 - age
    os.utime(path, (written, written))
    return path
