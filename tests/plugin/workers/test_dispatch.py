"""The route `compare`, through TensorBoard's own WSGI application and the real process for questions."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from comparison.drawn_runs import recorded, repeated

from tests.plugin.tenant import Tenant

MoveIn = Callable[..., Tenant]
SECONDS = 30.0


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


def compared(tenant: Tenant, a: str, b: str) -> dict[str, Any]:
    """The answer, asked for until it is there."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        answer: dict[str, Any] = json.loads(tenant.get(f"compare?a={a}&b={b}").data)
        if answer["state"] not in ("waiting", "analysing"):
            return answer
    raise AssertionError("no answer came")


def test_two_recordings_are_compared_in_the_process_for_questions(tenant: Tenant) -> None:
    known = ids(tenant)
    answer = compared(tenant, known["slow"], known["fast"])
    told = answer["comparison"]
    assert (answer["a"], answer["b"], answer["state"]) == (known["slow"], known["fast"], "done")
    assert told["speedup"] == pytest.approx(1.5, rel=0.01)
    assert told["a"].startswith("slow/")
    assert told["causes"]["lost"] == ["loader_in_main_process"]


def test_a_recording_without_a_verdict_is_said_to_have_none(tenant: Tenant) -> None:
    known = ids(tenant)
    told = compared(tenant, known["slow"], known["empty"])["comparison"]
    assert not told["comparable"]
    assert "incomplete" in told["headline"]


@pytest.mark.parametrize(("query", "status"), [("", 400), ("?a=1", 400), ("?a=1&b=2", 404)])
def test_what_cannot_be_asked_is_answered_with_a_sentence(tenant: Tenant, query: str, status: int) -> None:
    ids(tenant)
    answer = tenant.get(f"compare{query}")
    assert answer.status_code == status
    assert answer.data.decode().endswith(".")


def answered(tenant: Tenant, query: str) -> dict[str, Any]:
    """The answer to another question, asked for until it is there."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        answer: dict[str, Any] = json.loads(tenant.get(query).data)
        if answer["state"] not in ("waiting", "analysing"):
            return answer
    raise AssertionError("no answer came")


def test_several_recordings_are_a_series(tenant: Tenant) -> None:
    known = ids(tenant)
    asked = [known["slow"], known["fast"], known["slow"]]
    answer = answered(tenant, "series?" + "&".join(f"id={one}" for one in asked))
    told = answer["series"]
    assert answer["ids"] == asked
    assert (told["kind"], told["varies"]) == ("settings", "data loading")
    assert [len(point["runs"]) for point in told["points"]] == [2, 1]


def test_a_recording_under_other_conditions(tenant: Tenant) -> None:
    known = ids(tenant)
    told = answered(tenant, f"what_if?id={known['slow']}&device=NVIDIA%20H200&workers=4")["what_if"]
    assert told["changes"] == ["it ran on an H200 SXM", "the loader had 4 workers"]
    assert told["after"]["low"] < told["after"]["speedup"] < told["after"]["high"]


def test_a_device_that_nobody_knows_is_a_problem_with_near_names(tenant: Tenant) -> None:
    answer = answered(tenant, f"what_if?id={ids(tenant)['slow']}&device=RTX%2040900")
    assert answer["state"] == "failed"
    assert answer["problem"].startswith("No device is listed as")
    assert "did you mean" in answer["problem"]


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
        ("what_if?id=1", 400),
        ("what_if?id=1&workers=many", 400),
        ("what_if?id=1&workers=99999999999999999999", 400),
        ("what_if?id=1&workers=4", 404),
    ],
)
def test_what_cannot_be_compared_is_answered_with_a_sentence(tenant: Tenant, query: str, status: int) -> None:
    ids(tenant)
    answer = tenant.get(query)
    assert answer.status_code == status
    assert answer.data.decode().endswith(".")
