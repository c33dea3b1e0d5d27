"""Tests of the drill-down routes, through TensorBoard's own application and a real worker process."""

import json
import pickle
import sys
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from helpers.draw import drawn
from helpers.snapshots import random_snapshot
from werkzeug.test import TestResponse

from tb_bottleneck.plugin.state import run_index
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tests.plugin.tenant import Tenant

MoveIn = Callable[..., Tenant]
DIAGNOSE = "tb_bottleneck.diagnosis.trace:diagnose"
RUN = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""


SLOW = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    gpu     ababababa.ababababa.ababababa.
    nccl    .........n.........n.........n
"""


def write(path: Path, drawing: str = RUN) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(drawn(drawing, 1000)))


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
    assert {lane["group"] for lane in answer["timeline"]["lanes"]} == {"account", "steps", "device"}


def test_the_tree_is_answered(tenant: Tenant) -> None:
    tree = answer_of(tenant, "tree?by=operator&first=1&last=1")["tree"]
    assert (tree["by"], tree["steps"], tree["parent"][0]) == ("operator", 1, -1)
    assert sum(row["ns"][0] for row in tree["regimes"]) == pytest.approx(tree["window_ns"])


def test_the_tree_next_to_another_one(move_in: MoveIn, tmp_path: Path) -> None:
    write(tmp_path / "a" / "one.pt.trace.json")
    write(tmp_path / "b" / "one.pt.trace.json", SLOW)
    (tmp_path / "c.pickle").write_bytes(pickle.dumps(random_snapshot(20), 4))
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    snapshot, first, second = (entry["id"] for entry in sorted(tenant.listed(), key=lambda entry: entry["run"]))
    answer = tenant.ready(f"tree?id={first}&with={second}").json or {}
    assert answer["tree"]["parent"] == answer["other"]["parent"]
    assert answer["tree"]["regimes"] != answer["other"]["regimes"]
    for other in ("none", snapshot):
        assert tenant.get(f"tree?id={first}&with={other}").status_code == 404


@pytest.mark.parametrize(
    "route",
    [
        "tree?by=colour",
        "tree?first=one",
        "tree?device=-1",
    ],
)
def test_a_wrong_parameter_is_explained(tenant: Tenant, route: str) -> None:
    response = drilldown(tenant, route)
    assert response.status_code == 400
    assert response.text


@pytest.mark.parametrize("route", ["tree?first=7&last=9", "tree?device=5"])
def test_what_is_not_recorded_is_explained(tenant: Tenant, route: str) -> None:
    assert drilldown(tenant, route).status_code in (404, 422, 500)


def test_a_slice_is_a_trace(tenant: Tenant) -> None:
    answer = drilldown(tenant, "slice?")
    (entry,) = tenant.listed()
    assert answer.mimetype == "application/json"
    assert answer.json is not None
    assert answer.json["traceEvents"]
    packed = tenant.get(f"slice?id={entry['id']}", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.data[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("route", ["timeline", "tree", "slice", "job"])
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
    for route in ("timeline?", "slice?"):
        answer = drilldown(tenant, route)
        assert (answer.status_code, answer.mimetype) == (422, "text/plain")
        assert answer.text.endswith(".")


@pytest.mark.parametrize(
    "route",
    ["compare?a={0}&b={1}", "series?id={0}&id={1}", "what_if?device=H100&id={0}", "tree?id={0}", "report?id={0}"],
)
def test_why_a_file_cannot_be_read_names_neither_its_host_nor_its_folder(
    move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setattr(run_index, "SCAN_SECONDS", 1e9)  # the next scan would find that the file is gone
    lost = tmp_path / "lost" / "gpu17_1.1764000000000.pt.trace.json"
    write(tmp_path / "r" / "one.pt.trace.json")
    write(lost)
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    lost_id, one = (entry["id"] for entry in tenant.listed())
    lost.unlink()
    answer = tenant.ready(route.format(lost_id, one)).text
    assert "No such file" in answer
    assert "gpu17" not in answer
    assert str(tmp_path) not in answer


@pytest.mark.parametrize("route", ["timeline", "tree", "slice"])
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
    answer = drilldown(tenant, "tree?")
    assert (answer.status_code, answer.mimetype) == (500, "text/plain")
    assert "/no/such/python could not be started" in answer.text


def test_step_times_come_with_the_list(tenant: Tenant) -> None:
    each = tenant.done("one.pt.trace.json")["step_times_ns"]
    assert len(each) == 2
    assert all(9e6 <= step <= 11e6 for step in each)
