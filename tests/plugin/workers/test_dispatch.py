"""Tests of the answers to questions, through TensorBoard's own WSGI application and a real worker process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from comparison.drawn_runs import recorded, repeated
from helpers.simulated_telemetry import HEALTHY, SimulatedPhase, simulate
from helpers.telemetry_files import write

from tests.plugin.tenant import Tenant

MoveIn = Callable[..., Tenant]


@pytest.fixture
def tenant(move_in: MoveIn, tmp_path: Path) -> Tenant:
    for run, drawing in (
        ("slow", repeated(9, loader="######......", gpu="......####..")),
        ("fast", repeated(9, workers="#.......", gpu="...####.")),
        ("empty", "step a\nop #"),
    ):
        (tmp_path / run).mkdir()
        recorded(tmp_path / run, drawing)
    return move_in(tmp_path)


def ids(tenant: Tenant) -> dict[str, str]:
    return {entry["run"]: entry["id"] for entry in tenant.listed()}


def answer_of(tenant: Tenant, route: str) -> dict[str, Any]:
    response = tenant.ready(route)
    assert response.status_code == 200, response.text
    return dict(json.loads(response.data))


def compared(tenant: Tenant, a: str, b: str) -> dict[str, Any]:
    return answer_of(tenant, f"compare?a={a}&b={b}")


def test_two_recordings_are_compared_in_the_process_for_questions(tenant: Tenant) -> None:
    id_of = ids(tenant)
    answer = compared(tenant, id_of["slow"], id_of["fast"])
    comparison = answer["comparison"]
    assert (answer["a"], answer["b"], answer["state"]) == (id_of["slow"], id_of["fast"], "done")
    assert comparison["speedup"] == pytest.approx(1.5, rel=0.01)
    assert comparison["a"].startswith("slow/")
    assert comparison["causes"]["lost"] == ["loader_in_main_process"]


def test_a_recording_without_a_verdict_is_reported_as_such(tenant: Tenant) -> None:
    id_of = ids(tenant)
    comparison = compared(tenant, id_of["slow"], id_of["empty"])["comparison"]
    assert not comparison["comparable"]
    assert "incomplete" in comparison["headline"]


@pytest.mark.parametrize(("query", "status"), [("", 400), ("?a=1", 400), ("?a=1&b=2", 404)])
def test_an_invalid_question_gives_a_message(tenant: Tenant, query: str, status: int) -> None:
    ids(tenant)
    answer = tenant.get(f"compare{query}")
    assert answer.status_code == status
    assert answer.data.decode().endswith(".")


def test_several_recordings_are_a_series(tenant: Tenant) -> None:
    id_of = ids(tenant)
    requested = [id_of["slow"], id_of["fast"], id_of["slow"]]
    answer = answer_of(tenant, "series?" + "&".join(f"id={one}" for one in requested))
    series = answer["series"]
    assert answer["ids"] == requested
    assert (series["kind"], series["varies"]) == ("settings", "data loading")
    assert [len(point["runs"]) for point in series["points"]] == [2, 1]


def test_a_recording_under_other_conditions(tenant: Tenant) -> None:
    id_of = ids(tenant)
    prediction = answer_of(tenant, f"what_if?id={id_of['slow']}&device=NVIDIA%20H200&workers=4")["what_if"]
    assert prediction["changes"] == ["it ran on an H200 SXM", "the loader had 4 workers"]
    assert prediction["after"]["low"] < prediction["after"]["speedup"] < prediction["after"]["high"]


def test_an_unknown_device_gives_a_message_with_similar_names(tenant: Tenant) -> None:
    answer = tenant.ready(f"what_if?id={ids(tenant)['slow']}&device=RTX%2040900")
    assert (answer.status_code, answer.mimetype) == (422, "text/plain")
    assert answer.text.startswith("No device is listed as")
    assert "did you mean" in answer.text


def test_the_devices_that_can_be_asked_about_are_listed(tenant: Tenant) -> None:
    names = json.loads(tenant.get("devices").data)["names"]
    assert "H200 SXM" in names
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("series", 400),
        ("series?id=1", 400),
        ("series?" + "&".join(f"id={number}" for number in range(13)), 400),
        ("series?id=1&id=2", 404),
        ("what_if", 400),
        ("what_if?id=1&workers=many", 400),
        ("what_if?id=1&workers=99999999999999999999", 400),
        ("what_if?id=1", 404),
        ("what_if?id=1&workers=4", 404),
    ],
)
def test_recordings_that_cannot_be_compared_give_a_message(tenant: Tenant, query: str, status: int) -> None:
    ids(tenant)
    answer = tenant.get(query)
    assert answer.status_code == status
    assert answer.data.decode().endswith(".")


def test_runs_with_telemetry_alone_are_compared_by_their_steps(move_in: MoveIn, tmp_path: Path) -> None:
    """The second run is twice as fast: 40 ms per step for 80."""
    for name, dispatch in (("slow", 80.0), ("fast", 40.0)):
        (tmp_path / name).mkdir()
        phase = SimulatedPhase(40.0, device=None, dispatch=dispatch, load=0.0, copy=0.0, python=0.0)
        facts = {"device_kind": "cpu", "cores": 16, "program": "train"}
        messages = simulate([phase], 0, facts, (*HEALTHY, "gpu_utilisation", "device_busy"))
        write(tmp_path / name / "events.out.tfevents.1.host.1.0", messages)
    tenant = move_in(tmp_path)
    id_of = ids(tenant)
    comparison = compared(tenant, id_of["slow"], id_of["fast"])["comparison"]
    assert comparison["comparable"]
    assert comparison["run"]["speedup"] == pytest.approx(2.0, rel=0.02)
