"""Tests of the routes of http_api.md, through TensorBoard's own WSGI application and a real worker process."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

import tb_bottleneck.plugin
from tb_bottleneck.plugin.http.responses import client_of
from tb_bottleneck.sources.logdir import Listing
from tests.plugin.tenant import Tenant, record, until

MoveIn = Callable[..., Tenant]

TRACE = "host_1.1.pt.trace.json"


@pytest.fixture
def tenant(move_in: MoveIn, tmp_path: Path) -> Tenant:
    record(tmp_path / "resnet" / "slow" / TRACE)
    return move_in(tmp_path)


def test_the_contract_describes_every_route(tenant: Tenant) -> None:
    contract = (Path(tb_bottleneck.plugin.__file__).parent / "http_api.md").read_text()
    described = {f"/{name}" for name in re.findall(r"^## `([^`?]+)", contract, re.MULTILINE)}
    assert described == tenant.plugin.get_plugin_apps().keys()


def test_a_recording_is_listed_with_its_verdict(tenant: Tenant, tmp_path: Path) -> None:
    entry = tenant.done(TRACE)
    answer = tenant.runs()
    assert answer["state"] == "ready"
    assert answer["logdir"] == str(tmp_path)
    assert answer["problems"] == []
    assert entry.pop("id").isalnum()
    assert entry.pop("verdict")["headline"] == "Your device waits."
    assert entry.pop("device")
    assert entry.pop("modified_unix_ns") == 1_700_000_000e9
    assert entry == {
        "run": "resnet/slow",
        "source": TRACE,
        "size_bytes": 2.0,
        "state": "done",
        "progress": 1.0,
        "health": "ok",
        "reason": "",
        "step_ns": 5e6,
        "step_times_ns": [],
        "witness": "trace",
        "evidence_source": "trace",
        "live": False,
        "action": "",
        "open_findings": 0,
    }


def test_a_report_has_the_name_of_the_run_that_is_shown(tenant: Tenant) -> None:
    report = tenant.report(TRACE)
    assert report["run"] == "resnet/slow"
    assert report["verdict"]["regime"] == "input"


def test_during_the_first_scan_the_list_says_scanning_and_any_recording_is_pending(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Event()

    def slow_scan(roots: object) -> Listing:
        looked.wait()
        return Listing((), ())

    monkeypatch.setattr(tenant.plugin._runs, "_scan", slow_scan)
    assert tenant.runs()["state"] == "scanning"
    for route in ("report?id=abc", "job?id=abc", "telemetry?id=abc", "tree?id=abc", "compare?a=abc&b=abc"):
        answer = tenant.get(route)
        assert (answer.status_code, answer.json) == (202, {"state": "waiting", "progress": 0.0})
    looked.set()
    assert tenant.listed() == []


@pytest.mark.parametrize(
    ("route", "status"),
    [
        ("report", 400),
        ("report?id=", 400),
        ("report?id=0123456789abcdef", 404),
        ("report?id=../../etc/passwd", 404),
        ("static/absent.js", 404),
        ("static/../routes.py", 404),
        ("static/..%2froutes.py", 404),
        ("static/%2e%2e/%2e%2e/errors.py", 404),
        ("static//etc/passwd", 404),
        ("static/.built-from", 404),
        ("static/static/index.js", 404),
    ],
)
def test_what_is_not_there_is_refused_with_a_sentence(tenant: Tenant, route: str, status: int) -> None:
    tenant.listed()
    answer = tenant.get(route)
    assert answer.status_code == status
    assert answer.mimetype == "text/plain"
    assert answer.text.strip().endswith(".")
    assert "import" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("route", ["runs", "report?id=x", "static/index.js"])
def test_nothing_but_reading_is_allowed(tenant: Tenant, method: str, route: str) -> None:
    answer = tenant.get(route, method=method)
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_an_unchanged_answer_is_a_304_without_a_body(tenant: Tenant) -> None:
    tenant.done(TRACE)
    for route in ("runs", f"report?id={tenant.entry(TRACE)['id']}", "static/index.js"):
        first = tenant.get(route)
        tag = first.headers["ETag"]
        again = tenant.get(route, headers={"If-None-Match": tag})
        assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
        assert tenant.get(route, headers={"If-None-Match": 'W/"other"'}).status_code == 200


def test_an_unchanged_answer_leaves_no_line_in_the_log(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    """TensorBoard warned about each 304 without a media type, with two lines per request."""
    tenant.done(TRACE)
    caplog.clear()
    for route, media_type in (("runs", "application/json"), ("static/index.js", "text/javascript")):
        again = tenant.get(route, headers={"If-None-Match": tenant.get(route).headers["ETag"]})
        assert (again.status_code, again.mimetype) == (304, media_type)
    assert caplog.text == ""


def test_the_tag_changes_with_the_answer(tenant: Tenant, tmp_path: Path) -> None:
    tenant.done(TRACE)
    tag = tenant.get("runs").headers["ETag"]
    record(tmp_path / "second.pt.trace.json")
    tenant.plugin._runs._due = 0.0  # the next scan is due
    until(lambda: len(tenant.runs()["runs"]), lambda count: count == 2)
    assert tenant.get("runs", headers={"If-None-Match": tag}).status_code == 200


def test_head_is_a_get_without_its_body(tenant: Tenant) -> None:
    tenant.done(TRACE)
    head = tenant.get("runs", method="HEAD")
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["ETag"] == tenant.get("runs").headers["ETag"]


def test_the_entry_module_is_javascript_and_nothing_is_sniffed(tenant: Tenant) -> None:
    answer = tenant.get("static/index.js")
    assert answer.status_code == 200
    assert answer.mimetype == "text/javascript"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "render" in answer.text


def test_an_internal_error_fails_one_request_and_is_logged(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(tenant.plugin._runs, "latest", lambda: 1 / 0)
        answer = tenant.get("runs")
    assert (answer.status_code, answer.mimetype) == (500, "text/plain")
    assert "ZeroDivisionError" in caplog.text
    assert tenant.get("runs").status_code == 200


@pytest.mark.parametrize(
    ("address", "forwarded", "client"),
    [
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", "1.2.3.4", "10.0.0.7"),  # a client that makes up names
        ("127.0.0.1", "1.2.3.4, 10.0.0.7", "127.0.0.1 10.0.0.7"),
        ("::1", "10.0.0.7", "::1 10.0.0.7"),
    ],
)
def test_clients_are_told_apart_by_their_address_or_by_what_a_proxy_on_this_machine_says(
    address: str, forwarded: str, client: str
) -> None:
    headers = {"X-Forwarded-For": forwarded}
    request = Request(EnvironBuilder(headers=headers, environ_overrides={"REMOTE_ADDR": address}).get_environ())
    assert client_of(request).strip() == client


def test_routes_live_below_a_path_prefix(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / TRACE)
    tenant = move_in(tmp_path, prefix="/foo/static")
    assert tenant.done(TRACE)["run"] == "."
    assert tenant.get("static/index.js").status_code == 200
    assert tenant.client.get("/data/plugin/tb_bottleneck/runs").status_code == 404


def test_many_threads_get_whole_answers(tenant: Tenant, tmp_path: Path) -> None:
    for number in range(20):
        record(tmp_path / f"run{number}" / TRACE, age=number)
    tenant.listed()
    codes: list[int] = []

    def ask() -> None:
        for _ in range(20):
            codes.append(tenant.get("runs").status_code)
            ids = [entry["id"] for entry in tenant.runs()["runs"]]
            codes.extend(tenant.get(f"report?id={one}").status_code for one in ids[:3])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) <= {200, 202}
