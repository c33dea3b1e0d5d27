"""The published JSON Schemas are up to date, and every --json output of the commands satisfies them."""

import json
from pathlib import Path
from typing import Any

import pytest
from schema.json_schemas import TARGET, texts

from tb_bottleneck.__main__ import main

RECORDED = Path(__file__).parents[2] / "demo" / "recorded"
FIX = "python tests/schema/json_schemas.py"


def test_the_schemas_are_current() -> None:
    made = texts()
    assert sorted(made) == sorted(path.name for path in TARGET.glob("*.json"))
    for name, text in made.items():
        assert text == (TARGET / name).read_text(encoding="utf-8"), f"stale: run `{FIX}`"


def strict(schema: Any) -> Any:
    """Returns the schema without permission for unknown fields, which only later versions may have."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    return result | {"additionalProperties": False} if isinstance(schema.get("required"), list) else result


def problems(command: str, values: Any) -> list[str]:
    validators = pytest.importorskip("jsonschema")
    schema = strict(json.loads((TARGET / f"{command}.schema.json").read_text(encoding="utf-8")))
    validators.Draft202012Validator.check_schema(schema)
    found = validators.Draft202012Validator(schema).iter_errors(values)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def trace(problem: str, side: str = "slow") -> str:
    return str(next((RECORDED / problem / side).glob("*.pt.trace.json.gz")))


PROBLEMS = sorted(path.name for path in RECORDED.iterdir() if (path / "slow").is_dir())


@pytest.mark.parametrize(
    ("folder", "reports", "jobs"),
    [
        ("for_loop_optimizer", 2, 0),
        ("simulated/slow_rank_of_eight", 8, 1),
        pytest.param(".", 50, 1, marks=pytest.mark.nightly),
    ],
)
def test_reports_and_jobs(folder: str, reports: int, jobs: int, capsys: pytest.CaptureFixture[str]) -> None:
    main(["diagnose", str(RECORDED / folder), "--json", "--processes", "1"])
    values = json.loads(capsys.readouterr().out)
    assert len(values["reports"]) >= reports
    assert len(values["jobs"]) >= jobs
    assert problems("diagnose", values) == []


@pytest.mark.parametrize(
    "problem", [PROBLEMS[0], *(pytest.param(name, marks=pytest.mark.nightly) for name in PROBLEMS[1:])]
)
def test_comparisons(problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", trace(problem), trace(problem, "fixed"), "--json"])
    assert problems("compare", json.loads(capsys.readouterr().out)) == []


def test_a_series(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [trace("small_batch"), trace("small_batch", "fixed"), trace("small_batch")]
    main(["compare", *runs, "--json"])
    values = json.loads(capsys.readouterr().out)
    assert "points" in values
    assert problems("compare", values) == []


@pytest.mark.parametrize("changes", [[], ["--workers", "2"], ["--batch", "64"], ["--device", "NVIDIA H200"]])
@pytest.mark.parametrize("problem", ["loader_in_main_process", "simulated/pageable_copies"])
def test_predictions(problem: str, changes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["what-if", trace(problem), *changes, "--json"])
    values = json.loads(capsys.readouterr().out)
    assert ("rows" in values) == (not changes)
    assert problems("what-if", values) == []


@pytest.mark.parametrize("by", ["module", "line", "operator", "range", "kernel", "communication"])
def test_trees(by: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tree", trace("garbage_collection"), "--by", by, "--json"])
    assert problems("tree", json.loads(capsys.readouterr().out)) == []
    against = ["--against", trace("garbage_collection", "fixed")]
    main(["tree", trace("garbage_collection"), "--by", by, *against, "--json"])
    assert problems("tree", json.loads(capsys.readouterr().out)) == []


def test_what_is_missing_or_of_another_type_is_found() -> None:
    values = {"reports": [{"schema": "2"}], "jobs": []}
    found = problems("diagnose", values)
    assert any("'2' is not of type 'integer'" in problem for problem in found)
    assert any("'run' is a required property" in problem for problem in found)
