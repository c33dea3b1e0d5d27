"""The checks of TensorBoard: whether TensorBoard finds the plugin, and what a server on a free port answers."""

import json
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import entry_points
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from tb_bottleneck.base.units import bytes_text
from tb_bottleneck.doctor.child_processes import child
from tb_bottleneck.doctor.results import FAILS, WORKS, Row
from tb_bottleneck.plugin.http.static_files import DIRECTORY, ENTRY
from tb_bottleneck.schema.signals import PLUGIN_NAME

SERVER = ("-m", "tensorboard.main", "--host", "127.0.0.1", "--port", "0", "--load_fast", "false", "--logdir")
DATA = f"data/plugin/{PLUGIN_NAME}"
POLL_S, REQUEST_S = 0.2, 10.0
_URL = re.compile(rb"http://[^\s/]+:(\d+)/")


def plugin_names() -> set[str]:
    """Returns the names of the plugins whose entry points TensorBoard finds."""
    return {point.name for point in entry_points(group="tensorboard_plugins")}


def tab_bytes() -> int | None:
    """Returns the size of the built tab in bytes; None if the tab is not built."""
    if not (DIRECTORY / ENTRY).is_file():
        return None
    return sum(file.stat().st_size for file in DIRECTORY.iterdir())


def plugin_row(names: Collection[str], tab_bytes: int | None) -> Row:
    """Returns the row of the doctor's table about what TensorBoard finds. `names` are the names of the plugins,
    `tab_bytes` is the size of the built tab; None if it is not built."""
    name = "TensorBoard plugin"
    found = "entry point found" if "tb_bottleneck" in names else "no entry point"
    text = f"{found} ({len(names)} plugins), tab {'not built' if tab_bytes is None else bytes_text(tab_bytes)}"
    works = "tb_bottleneck" in names and tab_bytes is not None
    return Row(name, WORKS if works else FAILS, text, "" if works else "pip install . in TensorBoard's environment")


@dataclass(frozen=True)
class ServerAnswer:
    """What a TensorBoard server answered. `page`, `tab` and `runs` are HTTP statuses; 0 means no answer.

    `page` is the status of the page, `tab` of the tab's script, `runs` of the plugin's list of runs (-1: not a list).
    `listed` is the number of recordings in that list.
    """

    page: int = 0
    tab: int = 0
    runs: int = 0
    listed: int = 0
    seconds: float = 0.0
    because: str = ""


def server_row(answer: ServerAnswer, files: int) -> Row:
    """Returns the row of the doctor's table about a server whose logdir contains `files` recordings."""
    name = "TensorBoard server"
    fix = "start `python -m tensorboard.main --logdir .`: its output says why the tab is off"
    if answer.because:
        return Row(name, FAILS, answer.because, fix)
    text = f"page {answer.page}, tab {answer.tab}, runs {answer.runs} after {answer.seconds:.1f} s; "
    text += f"{answer.listed} of {files} recordings listed"
    works = (answer.page, answer.tab, answer.runs, answer.listed) == (200, 200, 200, files)
    return Row(name, WORKS if works else FAILS, text, "" if works else fix)


def ask_server(
    folder: Path, logdir: Path, wanted: int, seconds: float, server: tuple[str, ...] = SERVER
) -> ServerAnswer:
    """Starts a server for `logdir`, sends requests until the server lists `wanted` recordings, and ends the server.

    Proxies of the environment are not used. No new requests begin after `seconds`.
    """
    began = time.monotonic()
    log = folder / "tensorboard.log"
    answer = ServerAnswer(because="the server did not start in time")
    with log.open("wb") as output, child([*server, str(logdir)], folder, output) as process:
        while time.monotonic() - began < seconds:
            if process.poll() is not None:
                return ServerAnswer(because=f"the server ended with status {process.returncode}")
            address = _URL.search(log.read_bytes())
            if address is not None:
                answer = _asked(f"http://127.0.0.1:{int(address[1])}", began)
                if answer.listed >= wanted or answer.runs not in (200, 0):
                    break
            time.sleep(POLL_S)
    return answer


def _asked(url: str, began: float) -> ServerAnswer:
    page, tab = _get(f"{url}/")[0], _get(f"{url}/{DATA}/static/{ENTRY}")[0]
    status, body = _get(f"{url}/{DATA}/runs")
    try:
        listed = len(json.loads(body)["runs"]) if status == 200 else 0
    except (ValueError, KeyError, TypeError):
        status, listed = -1, 0  # it is no list of recordings
    return ServerAnswer(page, tab, status, listed, time.monotonic() - began)


def _get(url: str) -> tuple[int, bytes]:
    """Returns the HTTP status and the body of the answer. Without an answer, the status is 0."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=REQUEST_S) as response:
            return response.status, response.read()
    except HTTPError as error:
        return error.code, b""
    except (OSError, HTTPException):
        return 0, b""
