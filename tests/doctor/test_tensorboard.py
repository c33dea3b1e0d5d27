"""The checks of TensorBoard: a plugin that is not found, a server that ends, does not start, or does not answer."""

import json
import sys
from pathlib import Path

import pytest

from tb_bottleneck.doctor.results import FAILS, WORKS
from tb_bottleneck.doctor.tensorboard import ServerAnswer, ask_server, plugin_row, server_row

SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = {body!r}
        self.send_response({status} if "/plugin/" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"TensorBoard 2 at http://localhost:{{server.server_port}}/ (Press CTRL+C to quit)", flush=True)
server.serve_forever()
"""


def asked(tmp_path: Path, program: str, wanted: int = 2, seconds: float = 10.0) -> ServerAnswer:
    (tmp_path / "server.py").write_text(program)
    return ask_server(tmp_path, tmp_path, wanted, seconds, ("server.py",))


def test_a_server_that_lists_the_recordings_works(tmp_path: Path) -> None:
    body = json.dumps({"runs": [{}, {}]}).encode()
    answer = asked(tmp_path, SERVER.format(status=200, body=body))
    assert (answer.page, answer.tab, answer.runs, answer.listed) == (200, 200, 200, 2)
    assert server_row(answer, 2).result == WORKS
    assert server_row(answer, 3).result == FAILS


@pytest.mark.parametrize(("status", "body"), [(404, b""), (500, b""), (200, b"no JSON"), (200, b"[]")])
def test_a_plugin_that_does_not_answer(tmp_path: Path, status: int, body: bytes) -> None:
    row = server_row(asked(tmp_path, SERVER.format(status=status, body=body)), 2)
    assert row.result == FAILS
    assert "page 200" in row.measured
    assert "0 of 2 recordings listed" in row.measured


def test_a_server_that_ends(tmp_path: Path) -> None:
    row = server_row(asked(tmp_path, "raise SystemExit(3)"), 0)
    assert (row.result, row.measured) == (FAILS, "the server ended with status 3")


def test_a_server_that_does_not_start_in_time(tmp_path: Path) -> None:
    row = server_row(asked(tmp_path, "import time; time.sleep(60)", seconds=1.0), 0)
    assert (row.result, row.measured) == (FAILS, "the server did not start in time")


@pytest.mark.parametrize(
    ("names", "size", "result"),
    [({"tb_bottleneck", "scalars"}, 120_000, WORKS), ({"scalars"}, 120_000, FAILS), ({"tb_bottleneck"}, None, FAILS)],
)
def test_the_plugin_needs_an_entry_point_and_a_tab(names: set[str], size: int | None, result: str) -> None:
    row = plugin_row(names, size)
    assert row.result == result
    assert bool(row.fix) == (result == FAILS)


def test_the_server_is_started_with_this_python(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import sys; open('which', 'w').write(sys.executable)")
    ask_server(tmp_path, tmp_path, 0, 10.0, ("server.py",))
    assert (tmp_path / "which").read_text() == sys.executable
