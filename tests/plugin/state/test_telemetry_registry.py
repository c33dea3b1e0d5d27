"""Tests of telemetry through TensorBoard's own WSGI application: list, verdict, updates, and the route `telemetry`."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.simulated_telemetry import BEGIN, S, simulate
from helpers.telemetry_files import NAME, write
from helpers.telemetry_problems import simulated_phase

from tb_bottleneck.plugin.state import telemetry_registry as module
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext
from tests.plugin.tenant import Tenant, record, until

MoveIn = Callable[..., Tenant]


@pytest.fixture(autouse=True)
def listing_is_looked_at_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_bottleneck.plugin.state.run_index.SCAN_SECONDS", 0.0)
    monkeypatch.setattr("tb_bottleneck.plugin.state.run_index.PAUSE_FACTOR", 0.0)
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.0)


@pytest.fixture
def messages() -> list[RunContext | Packet]:
    return simulate([simulated_phase("healthy", 60.0), simulated_phase("storage", 60.0)])


def telemetry(tenant: Tenant, query: str = "") -> dict[str, Any]:
    answer = tenant.get(f"telemetry?id={tenant.done(NAME)['id']}{query}")
    assert answer.status_code == 200, answer.data
    return dict(json.loads(answer.data))


def series_of(answer: dict[str, Any], name: str) -> dict[str, Any]:
    (match,) = [series for series in answer["series"] if series["name"] == name]
    return dict(match)


def test_a_run_with_telemetry_is_listed_with_its_verdict(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / "resnet" / "monitor" / NAME, messages)
    entry = move_in(tmp_path).done(NAME)
    assert (entry["run"], entry["evidence_source"], entry["live"]) == ("resnet/monitor", "telemetry", False)
    assert (entry["health"], entry["verdict"]["regime"]) == ("ok", "input")
    assert 90e6 < entry["step_ns"] < 170e6


def test_a_trace_is_listed_as_one(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / "a.pt.trace.json")
    tenant = move_in(tmp_path)
    entry = tenant.done("a.pt.trace.json")
    assert (entry["evidence_source"], entry["live"]) == ("trace", False)
    assert tenant.get(f"telemetry?id={entry['id']}").status_code == 404


@pytest.mark.parametrize("route", ["timeline", "tree", "slice"])
def test_telemetry_has_no_timeline(move_in: MoveIn, tmp_path: Path, messages: Any, route: str) -> None:
    write(tmp_path / NAME, messages)
    tenant = move_in(tmp_path)
    assert tenant.get(f"{route}?id={tenant.done(NAME)['id']}").status_code == 404


def test_the_report_of_a_trace_next_to_it_refers_to_it(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    record(tmp_path / "a.pt.trace.json")
    tenant = move_in(tmp_path)
    tenant.done(NAME)
    tenant.done("a.pt.trace.json")
    assert tenant.report("a.pt.trace.json")["evidence_source"] == "both"
    assert tenant.report(NAME)["evidence_source"] == "telemetry"


def test_the_report_is_the_one_of_telemetry(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    report = move_in(tmp_path).report(NAME)
    assert report["evidence_source"] == "telemetry"
    assert [phase["regime"] for phase in report["phases"]] == ["compute", "input"]


def test_series_steps_and_phases_are_answered(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    answer = telemetry(move_in(tmp_path))
    assert answer["context"]["facts"]["cores"] == 16
    assert [band["regime"] for band in answer["bands"]] == ["compute", "input"]
    utilisation = series_of(answer, "gpu_utilisation")
    assert len(utilisation["unix_ns"]) == len(utilisation["values"]) > 115
    steps = answer["steps"]
    columns = {column["name"]: column["values"] for column in steps["columns"]}
    assert len(steps["number"]) == len(steps["wall_ns"]) == len(columns["loader_wait"]) > 500
    assert columns["transfer"][0] is None, "what is not known is null"
    assert answer["devices"] == ["GPU-11111111-2222-3333-4444-555555555555"]


def test_fewer_points_keep_the_extremes(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    tenant = move_in(tmp_path)
    whole, few = telemetry(tenant), telemetry(tenant, "&points=10")
    for name in ("gpu_utilisation", "power"):
        every, some = series_of(whole, name)["values"], series_of(few, name)["values"]
        assert len(some) <= 10
        assert (min(some), max(some)) == (min(every), max(every))
    assert max(few["steps"]["wall_ns"]) == max(whole["steps"]["wall_ns"])


def test_only_what_is_newer_is_answered(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    answer = telemetry(move_in(tmp_path), f"&since={BEGIN + 100 * S}")
    assert min(series_of(answer, "power")["unix_ns"]) > BEGIN + 100 * S
    assert min(answer["steps"]["end_unix_ns"]) > BEGIN + 100 * S


def test_a_range_is_answered_between_its_ends(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    answer = telemetry(move_in(tmp_path), f"&since={BEGIN + 100 * S}&until={BEGIN + 110 * S}")
    times = series_of(answer, "power")["unix_ns"]
    assert BEGIN + 100 * S < min(times) < max(times) <= BEGIN + 110 * S
    assert len(times) in (9, 10)
    assert max(answer["steps"]["end_unix_ns"]) <= BEGIN + 110 * S


@pytest.mark.parametrize("query", ["&points=many", "&since=never", "&points=nan", "&since=inf", "&until=later"])
def test_what_is_no_number_is_refused(move_in: MoveIn, tmp_path: Path, messages: Any, query: str) -> None:
    write(tmp_path / NAME, messages)
    tenant = move_in(tmp_path)
    assert tenant.get(f"telemetry?id={tenant.done(NAME)['id']}{query}").status_code == 400


def test_an_unchanged_answer_is_sent_once(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    write(tmp_path / NAME, messages)
    tenant = move_in(tmp_path)
    route = f"telemetry?id={tenant.done(NAME)['id']}&points=20"
    first = tenant.get(route)
    again = tenant.get(route, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def moved_to_end_now(messages: list[RunContext | Packet], seconds: int) -> None:
    """Shifts all times so that the run began this many seconds ago."""
    shift = time.time_ns() - BEGIN - seconds * S
    for packet in messages[1:]:
        assert isinstance(packet, Packet)
        for series in packet.series:
            series.unix_ns[:] = [when + shift for when in series.unix_ns]
        packet.steps.end_unix_ns[:] = [when + shift for when in packet.steps.end_unix_ns]


def test_a_growing_run_is_followed_and_live(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    moved_to_end_now(messages, 61)
    path = write(tmp_path / NAME, messages[:7])
    tenant = move_in(tmp_path)
    entry = tenant.done(NAME)
    assert (entry["live"], entry["verdict"]["regime"]) == (True, "compute")
    before = len(telemetry(tenant)["steps"]["number"])
    write(path, messages[7:])
    after = until(lambda: telemetry(tenant), lambda answer: len(answer["steps"]["number"]) > before)
    assert after["lost_packets"] == 0
    assert until(lambda: tenant.entry(NAME), lambda entry: entry["verdict"]["regime"] == "input")


def test_an_unreadable_file_is_answered_too(move_in: MoveIn, tmp_path: Path, messages: Any) -> None:
    path = write(tmp_path / NAME, messages[:3])
    with open(path, "r+b") as file:
        file.seek(500)
        file.write(b"\xff" * 3000)
    answer = telemetry(move_in(tmp_path))
    assert answer["dropped"]
    assert all(row["count"] > 0 for row in answer["dropped"])


def test_the_verdict_of_a_live_run_follows_it_and_is_about_the_whole_once_it_ended(
    move_in: MoveIn, tmp_path: Path
) -> None:
    messages = simulate(
        [simulated_phase("healthy", 60.0), simulated_phase("storage", 60.0), simulated_phase("healthy", 60.0)]
    )
    moved_to_end_now(messages, 181)
    path = write(tmp_path / NAME, messages)
    tenant = move_in(tmp_path)
    entry = tenant.done(NAME)
    assert (entry["live"], entry["verdict"]["regime"]) == (True, "compute")
    assert tenant.report(NAME)["verdict"]["headline"].startswith("In the last 60 s: ")
    assert [band["title"] for band in telemetry(tenant)["bands"]][1] == "Waiting for data"
    last = Packet(schema=1, sequence=messages[-1].sequence + 1)
    last.notes.add(unix_ns=time.time_ns(), code="ended", detail="monitor.stop() was called")
    write(path, [last])
    entry = until(lambda: tenant.entry(NAME), lambda entry: not entry["live"])
    assert entry["verdict"]["regime"] == "input"
    assert not telemetry(tenant)["live"]


def test_a_run_without_new_data_is_judged_as_a_whole(
    move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = simulate([simulated_phase("storage", 60.0), simulated_phase("healthy", 60.0)])
    moved_to_end_now(messages, 121)
    write(tmp_path / NAME, messages)
    tenant = move_in(tmp_path)
    assert tenant.done(NAME)["verdict"]["regime"] == "compute"
    monkeypatch.setattr(module, "LIVE_SECONDS", 0.0)
    assert until(lambda: tenant.entry(NAME), lambda entry: entry["verdict"]["regime"] == "input")["live"] is False


@pytest.mark.parametrize("replacement", ["pipe", "link"])
def test_a_file_that_became_a_pipe_or_a_link_costs_its_own_run_only(
    move_in: MoveIn, tmp_path: Path, messages: Any, replacement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan saw a regular file. Opening a pipe would hang the request, and every later one."""
    write(tmp_path / "a" / NAME, messages)
    write(tmp_path / "b" / NAME, messages)
    tenant = move_in(tmp_path)
    until(tenant.listed, lambda entries: [entry["state"] for entry in entries] == ["done", "done"])
    ids = {entry["run"]: entry["id"] for entry in tenant.listed()}
    monkeypatch.setattr("tb_bottleneck.plugin.state.run_index.SCAN_SECONDS", 1e6)
    tenant.runs()
    (tmp_path / "a" / NAME).unlink()
    if replacement == "pipe":
        os.mkfifo(tmp_path / "a" / NAME)
    else:
        (tmp_path / "a" / NAME).symlink_to(tmp_path / "b" / NAME)
    report = tenant.get(f"report?id={ids['a']}")
    if report.status_code == 200:  # 404 if a scan that ran meanwhile found it gone
        assert report.json is not None
        assert report.json["report"]["health"]["status"] == "unreadable"
    other = tenant.get(f"report?id={ids['b']}")
    assert other.json is not None
    assert other.json["report"]["health"]["status"] == "ok"


def test_a_run_that_ends_while_it_is_judged_is_judged_again(
    move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its report is about the last phase, as of a live run, although it has ended when the report is made."""
    messages = simulate([simulated_phase("storage", 60.0), simulated_phase("healthy", 60.0)])
    moved_to_end_now(messages, 121)
    write(tmp_path / NAME, messages)
    answers = iter([True])
    monkeypatch.setattr(module, "is_live", lambda last: next(answers, False))
    tenant = move_in(tmp_path)
    tenant.listed()
    entry = until(lambda: tenant.entry(NAME), lambda entry: entry.get("verdict", {}).get("regime") == "input")
    assert entry["live"] is False
