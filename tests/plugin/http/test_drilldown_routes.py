"""The routes for a closer look, through TensorBoard's own application and the real process for questions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from draw import drawn

from tests.plugin.tenant import Tenant, until

MoveIn = Callable[..., Tenant]
DIAGNOSE = "tb_bottleneck.diagnosis.trace:diagnose"
RUN = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""
WAITS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    gpu     abab......abab......abab......
    nccl    ....nnnnnn....nnnnnn....nnnnnn
"""
SLOW = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    gpu     ababababa.ababababa.ababababa.
    nccl    .........n.........n.........n
"""


def write(path: Path, drawing: str = RUN, rank: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}}
    path.write_text(json.dumps(drawn(drawing, 1000, **about)))


@pytest.fixture
def tenant(move_in: MoveIn, tmp_path: Path) -> Tenant:
    write(tmp_path / "r" / "one.pt.trace.json")
    return move_in(tmp_path, analyse=DIAGNOSE)


def closer(tenant: Tenant, route: str) -> dict[str, Any]:
    (entry,) = tenant.listed()
    url = route.replace("?", f"?id={entry['id']}&")
    return dict(until(lambda: tenant.get(url).json, lambda answer: answer["state"] in ("done", "failed")))


def test_a_stretch_of_the_timeline_is_answered(tenant: Tenant) -> None:
    answer = closer(tenant, "timeline?begin=1000000&end=2000000&pixels=64")
    assert answer["state"] == "done"
    assert (answer["timeline"]["begin_ns"], answer["timeline"]["end_ns"]) == (1e6, 2e6)
    assert {lane["group"] for lane in answer["timeline"]["lanes"]} == {"account", "steps", "host", "device"}


def test_the_tables_are_answered(tenant: Tenant) -> None:
    answer = closer(tenant, "tables?")
    assert answer["tables"]["kernels"]
    assert answer["tables"]["steps"] == 2  # the profiler's own first step is left out


def test_a_slice_is_a_trace(tenant: Tenant) -> None:
    closer(tenant, "tables?")  # until then a message stands in its place
    (entry,) = tenant.listed()
    answer = tenant.get(f"slice?id={entry['id']}")
    assert answer.mimetype == "application/json"
    assert answer.json is not None
    assert answer.json["traceEvents"]
    packed = tenant.get(f"slice?id={entry['id']}", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.data[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("route", ["timeline", "tables", "slice", "ranks"])
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
    answer = closer(move_in(tmp_path, analyse=DIAGNOSE), "timeline?")
    assert answer["state"] == "failed"
    assert answer["problem"]


def test_ranks_of_a_job_stand_together_with_the_one_the_others_wait_for(move_in: MoveIn, tmp_path: Path) -> None:
    for rank, drawing in enumerate((WAITS, SLOW, WAITS)):
        write(tmp_path / "job" / f"rank{rank}.pt.trace.json", drawing, rank)
    write(tmp_path / "other" / "one.pt.trace.json")
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    for rank in range(3):
        tenant.done(f"rank{rank}.pt.trace.json")
    answer = tenant.get(f"ranks?id={tenant.entry('rank0.pt.trace.json')['id']}").json
    assert answer is not None
    assert [(row["rank"], row["is_straggler"]) for row in answer["ranks"]] == [(0, False), (1, True), (2, False)]
    assert answer["job"]["stragglers"][0]["rank"] == 1
    assert all(sum(row["share"] for row in rank["account"]) == pytest.approx(1) for rank in answer["ranks"])
    alone = tenant.get(f"ranks?id={tenant.done('one.pt.trace.json')['id']}").json
    assert alone is not None
    assert (alone["ranks"], "job" in alone) == ([], False)


def test_step_times_come_with_the_list(tenant: Tenant) -> None:
    each = tenant.done("one.pt.trace.json")["step_times_ns"]
    assert len(each) == 2
    assert all(9e6 <= step <= 11e6 for step in each)
