"""`python -m demo public` downloads what is pinned, and nothing else, from a server in a thread."""

import functools
import gzip
import hashlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from demo import __main__ as command
from demo import download, pins, public, serve
from demo.pins import InvalidPin, Pin
from tb_bottleneck.sources.logdir import scan

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def trace(name: str) -> bytes:
    events = [{"ph": "X", "name": name, "ts": i, "dur": 1, "pid": 1, "tid": 1} for i in range(100)]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


def pin_of(name: str, content: bytes, path: str) -> Pin:
    sha256 = hashlib.sha256(content).hexdigest()
    return Pin(name, "V100", f"What {name} shows.", "MIT", "owner/repository", COMMIT, path, len(content), sha256)


BEFORE, AFTER, PACKED = trace("before"), trace("after"), trace("packed")
PINS = (
    pin_of("v100_workers/before", BEFORE, "runs/a trace.json"),
    pin_of("v100_workers/after", AFTER, "runs/after.json"),
    pin_of("a100_packed", PACKED, "runs/worker0.pt.trace.json.gz"),
)
FILES = {
    f"/owner/repository/{COMMIT}/runs/a%20trace.json": BEFORE,
    f"/owner/repository/{COMMIT}/runs/after.json": AFTER,
    f"/owner/repository/{COMMIT}/runs/worker0.pt.trace.json.gz": gzip.compress(PACKED),
}
FIRST = next(iter(FILES))


@dataclass
class Served:
    """A server of files, the requests that it got (path, Range), and its faults."""

    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)  # of the next answers, instead of files
    cut: list[int] = field(default_factory=list)  # bytes of the next answers, which then end
    ranges: bool = True
    length: bool = True
    base: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.requests.append((handler.path, wanted))
        body = self.files.get(handler.path)
        if self.statuses or body is None:
            handler.send_error(self.statuses.pop() if self.statuses else 404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        if start and start >= len(body):
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if self.length:
            handler.send_header("Content-Length", str(len(body) - start))
        handler.end_headers()
        handler.wfile.write(body[start : start + self.cut.pop()] if self.cut else body[start:])


class Handler(BaseHTTPRequestHandler):
    def __init__(self, served: Served, *rest: Any) -> None:
        self.served = served
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.served.answer(self)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setattr(public, "read_pins", lambda: PINS)
    served = Served()
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, served)) as http:
        served.base = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield served
        http.shutdown()
        thread.join()


def run(server: Served, folder: Path, *arguments: str) -> int:
    return command.main(["public", "--to", str(folder), "--base-url", server.base, *(arguments or ["--no-serve"])])


def stored(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


ALL = {
    "v100_workers/before/recording.pt.trace.json",
    "v100_workers/after/recording.pt.trace.json",
    "a100_packed/recording.pt.trace.json.gz",
}


def test_recordings_are_stored_as_they_come_and_are_runs_of_the_logdir(server: Served, tmp_path: Path) -> None:
    assert run(server, tmp_path) == 0
    assert stored(tmp_path) == ALL
    assert (tmp_path / "v100_workers/before/recording.pt.trace.json").read_bytes() == BEFORE
    assert [recording.run for recording in scan(tmp_path).recordings] == [
        "a100_packed",
        "v100_workers/after",
        "v100_workers/before",
    ]
    assert [path for path, _ in server.requests] == list(FILES)


def test_the_table_is_printed_before_the_first_request(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def fetch_all(*_: object) -> dict[Pin, str]:
        seen.append(capsys.readouterr().out)
        return {}

    monkeypatch.setattr(public, "fetch_all", fetch_all)
    run(server, tmp_path)
    (table,) = seen
    for pin in PINS:
        assert all(text in table for text in (pin.name, pin.gpu, pin.shows, pin.licence, pin.repository))
    assert COMMIT[:12] in table
    assert f"Folder: {tmp_path}" in table
    assert f"3 recordings, {sum(pin.size for pin in PINS) / 1e6:.1f} MB" in table


def test_list_prints_the_table_and_stops(server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(server, tmp_path / "new", "--list") == 0
    assert "v100_workers/before" in capsys.readouterr().out
    assert not server.requests
    assert not (tmp_path / "new").exists()


def test_what_is_stored_is_not_downloaded_again(server: Served, tmp_path: Path) -> None:
    run(server, tmp_path)
    server.requests.clear()
    assert run(server, tmp_path) == 0
    assert not server.requests


def test_a_stored_file_with_another_content_is_replaced(server: Served, tmp_path: Path) -> None:
    run(server, tmp_path)
    damaged = PINS[0].file(tmp_path)
    damaged.write_bytes(BEFORE[:-1] + b"!")
    server.requests.clear()
    assert run(server, tmp_path) == 0
    assert server.requests == [(FIRST, None)]
    assert damaged.read_bytes() == BEFORE


def test_a_file_that_was_put_there_by_hand_may_be_decompressed(server: Served, tmp_path: Path) -> None:
    path = PINS[2].file(tmp_path)
    path.parent.mkdir()
    path.write_bytes(PACKED)
    assert run(server, tmp_path) == 0
    assert len(server.requests) == 2


@pytest.mark.parametrize("ranges", [True, False])
def test_a_partial_file_is_continued_or_replaced(server: Served, tmp_path: Path, ranges: bool) -> None:
    server.ranges = ranges
    path = PINS[0].file(tmp_path)
    path.parent.mkdir(parents=True)
    path.with_name(path.name + ".partial").write_bytes(BEFORE[:100])
    assert run(server, tmp_path) == 0
    assert server.requests[0] == (FIRST, "bytes=100-")
    assert path.read_bytes() == BEFORE
    assert stored(tmp_path) == ALL


def test_a_partial_file_beyond_the_end_is_replaced(server: Served, tmp_path: Path) -> None:
    """The compressed file is shorter than the pinned size of its JSON."""
    path = PINS[2].file(tmp_path)
    path.parent.mkdir(parents=True)
    path.with_name(path.name + ".partial").write_bytes(b"x" * (PINS[2].size - 1))
    assert run(server, tmp_path) == 0
    assert stored(tmp_path) == ALL


def test_a_transfer_that_ends_early_is_continued(server: Served, tmp_path: Path) -> None:
    server.cut = [200]
    assert run(server, tmp_path) == 0
    assert server.requests[:2] == [(FIRST, None), (FIRST, "bytes=200-")]
    assert stored(tmp_path) == ALL


def test_a_server_error_is_tried_two_times_more(server: Served, tmp_path: Path) -> None:
    server.statuses = [503, 503]
    assert run(server, tmp_path) == 0
    server.requests.clear()
    server.statuses = [503] * 3
    assert run(server, tmp_path / "again") == 1
    assert len(server.requests) == 3 + 2
    assert stored(tmp_path / "again") == ALL - {"v100_workers/before/recording.pt.trace.json"}


def test_a_file_that_the_server_does_not_have_is_asked_for_once(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del server.files[FIRST]
    assert run(server, tmp_path) == 1
    assert len(server.requests) == 3
    assert len(stored(tmp_path)) == 2
    message = capsys.readouterr().err
    assert "status 404" in message
    assert server.base + FIRST in message
    assert str(PINS[0].file(tmp_path)) in message


@pytest.mark.parametrize("changed", [BEFORE[:-1] + b"!", BEFORE[:-1], gzip.compress(BEFORE)[:-9], b""])
def test_a_file_with_another_content_is_deleted_and_the_others_are_downloaded(
    server: Served, tmp_path: Path, changed: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    server.files[FIRST] = changed
    assert run(server, tmp_path) == 1
    assert stored(tmp_path) == ALL - {"v100_workers/before/recording.pt.trace.json"}
    assert "v100_workers/before: the downloaded file is not the pinned one" in capsys.readouterr().err


def test_a_larger_file_is_refused_before_it_is_read(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.files[FIRST] = BEFORE + b" "
    assert run(server, tmp_path) == 1
    assert f"the server has {len(BEFORE) + 1:,} bytes" in capsys.readouterr().err
    assert stored(tmp_path) == ALL - {"v100_workers/before/recording.pt.trace.json"}


def test_no_more_is_read_than_the_pinned_size(server: Served, tmp_path: Path) -> None:
    server.length = False
    server.files[FIRST] = bytes(300_000)
    reported: list[int] = []
    download.download(server.base + FIRST, tmp_path / "part", 100_000, lambda have, _total: reported.append(have))
    assert (tmp_path / "part").stat().st_size == reported[-1] == 100_000


def test_no_more_is_decompressed_than_the_pinned_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(10_000_000)))
    hashed: list[int] = []

    class Digest:
        def update(self, block: bytes) -> None:
            hashed.append(len(block))

    monkeypatch.setattr(pins.hashlib, "sha256", Digest)
    wrong = pins.difference(path, replace(PINS[0], size=200_000))
    assert wrong is not None
    assert "more than 200,000 bytes" in wrong
    assert sum(hashed) == 200_001
    assert max(hashed) <= 1 << 16


@pytest.fixture
def no_server() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_without_a_server_the_text_says_what_was_looked_for_and_what_to_do(
    server: Served, no_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(monkeypatch)
    server.base = no_server
    assert run(server, tmp_path) == 1
    message = capsys.readouterr().err
    assert len(asked) == 1, "without a connection, the other files are not tried"
    for pin in PINS:
        assert pin.url(no_server) in message
        assert str(pin.file(tmp_path)) in message
    assert "Connection refused" in message
    assert "--base-url" in message
    assert "by hand" in message
    assert "Traceback" not in message


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []
    real: Callable[..., None] = download.download

    def counting(url: str, *rest: Any) -> None:
        urls.append(url)
        real(url, *rest)

    monkeypatch.setattr(public, "download", counting)
    return urls


def test_without_a_server_the_stored_recordings_are_shown(
    server: Served, no_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logdirs = serving(monkeypatch)
    run(server, tmp_path)
    damaged = PINS[0].file(tmp_path)
    damaged.write_bytes(b"{}")
    server.base = no_server
    assert run(server, tmp_path, "--port", "0") == 1
    assert logdirs == [tmp_path]
    shown = capsys.readouterr().out.partition("Recordings;")[2]
    assert "http://here/#tb_bottleneck&p.tb_bottleneck.run=a100_packed/recording.pt.trace.json.gz" in shown
    assert "v100_workers/before" not in shown
    assert not damaged.exists()


def test_without_any_recording_nothing_is_shown(
    server: Served, no_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logdirs = serving(monkeypatch)
    server.base = no_server
    assert run(server, tmp_path, "--port", "0") == 1
    assert not logdirs


def test_all_recordings_are_shown(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logdirs = serving(monkeypatch)
    assert run(server, tmp_path, "--port", "0") == 0
    assert logdirs == [tmp_path]


def serving(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Returns the list of the logdirs that are served from now on."""
    logdirs: list[Path] = []

    def start(logdir: Path, host: str, port: int | None) -> str:
        assert (host, port) == ("localhost", 0)
        logdirs.append(logdir)
        return "http://here/"

    monkeypatch.setattr(serve, "check_installation", lambda: None)
    monkeypatch.setattr(serve, "start", start)
    monkeypatch.setattr(serve, "wait_for_the_end", lambda: None)
    return logdirs


def test_what_cannot_be_shown_is_not_downloaded(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "entry_points", lambda group: [])
    assert run(server, tmp_path, "--port", "0") == 2
    assert "pip install ." in capsys.readouterr().err
    assert not server.requests


def test_a_folder_that_cannot_be_created_is_named(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(server, tmp_path / "file") == 2
    message = capsys.readouterr().err
    assert str(tmp_path / "file") in message
    assert "Traceback" not in message


def test_ctrl_c_keeps_the_partial_file(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_have: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(public, "_progress", lambda _name: interrupt)
    assert run(server, tmp_path) == 130
    assert stored(tmp_path) == {"v100_workers/before/recording.pt.trace.json.partial"}
    assert "the same command continues" in capsys.readouterr().err


def test_progress_is_for_terminals_and_elsewhere_one_line_per_file(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(server, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [pin.name for pin in PINS]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run(server, tmp_path / "again")
    assert "v100_workers/before: 0.0 MB of 0.0 MB (100%)" in capsys.readouterr().err


@pytest.mark.parametrize("base", ["ftp://example.org", "/tmp", "https://", "http://[", "file:///etc"])
def test_only_http_is_a_server(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["public", "--base-url", base])
    assert ended.value.code == 2
    assert "expected an address" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "../outside"),
        ("name", "/etc"),
        ("name", "v100/.."),
        ("name", "v100/before/x"),
        ("name", "C:v100"),
        ("name", ""),
        ("name", 1),
        ("repository", "owner"),
        ("repository", "../owner"),
        ("repository", "owner/.."),
        ("commit", "main"),
        ("path", "/etc/trace.json"),
        ("path", "a/../../trace.json"),
        ("path", "a//trace.json"),
        ("path", "..\\trace.json"),
        ("path", "trace.json?token=1"),
        ("path", "trace.py"),
        ("sha256", "0" * 63),
        ("size", 0),
        ("size", -1),
        ("size", "1"),
        ("size", 10**12),
        ("licence", "none stated"),
        ("licence", []),
        ("gpu", "V100\x1b[2J"),
    ],
)
def test_a_hostile_entry_is_refused(key: str, value: object) -> None:
    fields = {name: getattr(PINS[0], name) for name in Pin.__dataclass_fields__}
    assert Pin(**fields) == PINS[0]
    with pytest.raises(InvalidPin, match=f"{key} = "):
        Pin(**fields | {key: value})


def test_an_invalid_data_file_is_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = pins.PINS.read_text(encoding="utf-8").replace("v100_resnet50_workers/before", "../../etc")
    (tmp_path / "public.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(public, "read_pins", lambda: pins.read_pins(tmp_path / "public.toml"))
    assert command.main(["public", "--to", str(tmp_path / "new")]) == 2
    message = capsys.readouterr().err
    assert "'../../etc'" in message
    assert message.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [("gpu =", "gpus =", "gpu, gpus"), ("workers/after", "workers/before", "used twice")],
)
def test_missing_fields_and_equal_names_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = pins.PINS.read_text(encoding="utf-8").replace(old, new)
    (tmp_path / "public.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidPin, match=says):
        pins.read_pins(tmp_path / "public.toml")


def test_the_pinned_pairs_are_complete_and_lie_next_to_each_other() -> None:
    names = [pin.name for pin in pins.read_pins()]
    variants = [[name.partition("/")[2] for name in group] for _, group in groupby(names, lambda n: n.split("/")[0])]
    assert {tuple(each) for each in variants} == {("before", "after"), ("",)}
    assert variants.count(["before", "after"]) >= 3


def test_the_cache_is_below_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert public.cache_folder() == tmp_path / "tb_bottleneck" / "public"
    for unusable in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert public.cache_folder() == Path.home() / ".cache" / "tb_bottleneck" / "public"


def test_the_help_of_the_demo_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert "python -m demo public" in capsys.readouterr().out
