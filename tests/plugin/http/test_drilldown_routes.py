"""Tests of the drill-down routes, through TensorBoard's own application and a real worker process."""

import json
import sys
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from helpers.draw import drawn
from werkzeug.test import TestResponse

from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tests.plugin.tenant import Tenant

MoveIn = Callable[..., Tenant]
DIAGNOSE = "tb_bottleneck.diagnosis.trace:diagnose"
RUN = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(drawn(RUN, 1000)))


@pytest.fixture
def tenant(move_in: MoveIn, tmp_path: Path) -> Tenant:
    write(tmp_path / "r" / "one.pt.trace.json")
    return move_in(tmp_path, analyse=DIAGNOSE)


def drilldown(tenant: Tenant, route: str) -> TestResponse:
    (entry,) = tenant.listed()
    return tenant.ready(route.replace("?", f"?id={entry['id']}&"))


def answer_of(tenant: Tenant, route: str) -> dict[str, Any]:
    response = drilldown(tenant, route)
    assert (response.status_code, response.mimetype) == (200, "application/json")
    return dict(response.json or {})


def test_a_range_of_the_timeline_is_answered(tenant: Tenant) -> None:
    answer = answer_of(tenant, "timeline?begin=1000000&end=2000000&pixels=64")
    assert (answer["timeline"]["begin_ns"], answer["timeline"]["end_ns"]) == (1e6, 2e6)
    assert {lane["group"] for lane in answer["timeline"]["lanes"]} == {"account", "steps", "host", "device"}


def test_the_tables_are_answered(tenant: Tenant) -> None:
    answer = answer_of(tenant, "tables?")
    assert answer["tables"]["kernels"]
    assert answer["tables"]["steps"] == 2  # the profiler's own first step is left out


def test_a_slice_is_a_trace(tenant: Tenant) -> None:
    answer = drilldown(tenant, "slice?")
    (entry,) = tenant.listed()
    assert answer.mimetype == "application/json"
    assert answer.json is not None
    assert answer.json["traceEvents"]
    packed = tenant.get(f"slice?id={entry['id']}", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.data[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("route", ["timeline", "tables", "slice", "job"])
@pytest.mark.parametrize(("query", "status"), [("", 400), ("?id=", 400), ("?id=../../etc/passwd", 404)])
def test_what_names_no_recording_is_refused(tenant: Tenant, route: str, query: str, status: int) -> None:
    tenant.listed()
    answer = tenant.get(route + query)
    assert answer.status_code == status
    assert answer.text.endswith(".")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "abc", "1e300", "0x10"])
@pytest.mark.parametrize("name", ["begin", "end", "pixels"])
def test_what_is_no_number_is_refused(tenant: Tenant, name: str, value: str) -> None:
    (entry,) = tenant.listed()
    answer = tenant.get(f"timeline?id={entry['id']}&{name}={value}")
    assert answer.status_code == 400
    assert name in answer.text


def test_a_file_that_is_no_trace_says_why(move_in: MoveIn, tmp_path: Path) -> None:
    (tmp_path / "bad.pt.trace.json").write_text("{")
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    for route in ("timeline?", "tables?", "slice?"):
        answer = drilldown(tenant, route)
        assert (answer.status_code, answer.mimetype) == (422, "text/plain")
        assert answer.text.endswith(".")


@pytest.mark.parametrize("route", ["timeline", "tables", "slice"])
def test_while_the_answer_is_pending_the_status_is_202(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setattr(QuestionQueue, "ask", partialmethod(QuestionQueue.ask, patience=0.0))
    (entry,) = tenant.listed()
    first = tenant.get(f"{route}?id={entry['id']}")
    assert (first.status_code, first.mimetype, first.headers.get("ETag")) == (202, "application/json", None)
    assert first.json is not None
    assert first.json["state"] in ("waiting", "analysing")
    assert tenant.ready(f"{route}?id={entry['id']}").status_code == 200


def test_a_failure_of_the_worker_process_is_a_500(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    answer = drilldown(tenant, "tables?")
    assert (answer.status_code, answer.mimetype) == (500, "text/plain")
    assert "/no/such/python could not be started" in answer.text


def test_step_times_come_with_the_list(tenant: Tenant) -> None:
    each = tenant.done("one.pt.trace.json")["step_times_ns"]
    assert len(each) == 2
    assert all(9e6 <= step <= 11e6 for step in each)
