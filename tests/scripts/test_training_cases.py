"""Tests of the list of trainings, of its scoring, and that the committed results cover all of it."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.measurements.trainings.cases import CASES, TRAININGS
from tests.measurements.trainings.judge import answer, gain, line_told
from tests.measurements.trainings.table import (
    ABOVE,
    NO_LINE,
    OUTSIDE,
    RESULTS,
    inside,
    load,
    misses,
    reason_for,
    section,
)

CASE = CASES["autoencoder/slow_read"]
HEALTHY = CASES["cnn/item_per_step"]


def told(cause: str, severity: str = "critical", text: str = "", case: str = CASE.name) -> dict:
    """Returns the output of `diagnose --json` for the slow half of a case, with one finding."""
    finding = {
        "cause": cause,
        "title": text,
        "speedup": {"expected": 2.0, "low": 1.5, "high": 2.5, "basis": "replay"},
        "evidence": [{"label": "calls", "text": text}],
    }
    report = {
        "run": f"{case}/slow",
        "source": "rank0.pt.trace.json.gz",
        "health": {"status": "ok"},
        "verdict": {"regime": "input", "share": 0.5, "severity": severity},
        "findings": [finding] if cause else [],
    }
    return {"reports": [report], "jobs": []}


def test_there_are_seventy_trainings_with_at_least_eight_healthy_ones() -> None:
    assert len(CASES) == 70
    assert sum(not case.words for case in CASES.values()) >= 8
    assert set(TRAININGS) == {case.training for case in CASES.values()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_planted_line_is_marked_once_inside_a_function(case) -> None:
    assert case.function < case.planted


def test_no_mark_is_without_a_case() -> None:
    marks = Counter(
        text.rsplit("# planted: ", 1)[1]
        for file in {case.file for case in CASES.values()}
        for text in file.read_text(encoding="utf-8").splitlines()
        if "# planted: " in text
    )
    assert marks == Counter(list(CASES))


def test_a_right_answer_names_the_problem_the_regime_and_the_gain() -> None:
    found = answer(CASE, told("slow_storage"))
    assert found["regime_right"]
    assert found["named"]
    assert found["predicted"] == {"expected": 2.0, "low": 1.5, "high": 2.5, "basis": "replay"}


def test_another_cause_names_nothing_and_predicts_nothing() -> None:
    found = answer(CASE, told("garbage_collection"))
    assert not found["named"]
    assert found["predicted"] is None


@pytest.mark.parametrize(("severity", "healthy"), [("none", True), ("info", False), ("critical", False)])
def test_a_healthy_training_has_severity_none(severity: str, healthy: bool) -> None:
    assert answer(HEALTHY, told("", severity, case=HEALTHY.name))["named"] == healthy


def test_a_recording_without_a_verdict_is_neither_healthy_nor_right() -> None:
    found = answer(HEALTHY, {"reports": [], "jobs": []})
    assert not found["named"]
    assert not found["regime_right"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"vision.py:{CASE.planted}", "line"),
        (f"/home/me/vision.py({CASE.function}): read", "function"),
        (f"vision.py:{CASE.planted}0", "no"),
        (f"television.py:{CASE.planted}", "no"),
    ],
)
def test_the_line_is_searched_in_the_findings(text: str, expected: str) -> None:
    assert line_told(CASE, [{"evidence": [{"text": text}]}]) == expected


@pytest.mark.parametrize(("others", "expected"), [([CASE.planted], "line"), ([CASE.planted + 1], "no")])
def test_a_line_next_to_the_costliest_one_counts(others: list[int], expected: str) -> None:
    place = {
        "file": f"tests/measurements/trainings/{CASE.file.name}",
        "line": 0,
        "other_lines": [{"line": line} for line in others],
    }
    assert line_told(CASE, [{"where": [place]}]) == expected
    assert line_told(CASE, [{"where": [{**place, "file": "television.py"}]}]) == "no"


def test_a_gain_is_compared_with_the_clock_of_the_case() -> None:
    times = {
        "slow": {"timed": [{"wall_ms": 30.0, "cpu_ms": 9.0}] * 3},
        "fixed": {"timed": [{"wall_ms": wall, "cpu_ms": 9.0} for wall in (10.0, 15.0, 99.0)]},
    }
    assert gain(CASE, times) == 2.0
    assert inside(CASE, answer(CASE, told("slow_storage")), times)
    assert not inside(CASE, answer(CASE, told("slow_storage")), {**times, "fixed": times["slow"]})


def test_every_case_has_a_result_and_every_miss_a_reason() -> None:
    times, told = load("times")["cases"], load("answers")["cases"]
    assert set(told) == set(times) == set(CASES)
    for name, case in CASES.items():
        for miss in misses(case, told[name], times[name]):
            assert reason_for(case, miss), (name, miss)


def test_no_reason_is_left_for_what_is_right_now() -> None:
    times, told = load("times")["cases"], load("answers")["cases"]
    missed = {
        f"{name}: {miss if miss in (NO_LINE, OUTSIDE, ABOVE) else 'verdict'}"
        for name, case in CASES.items()
        for miss in misses(case, told[name], times[name])
    }
    assert set(json.loads((RESULTS / "reasons.json").read_text(encoding="utf-8"))["cases"]) <= missed


def test_the_page_has_the_section_as_it_is_now() -> None:
    page = (Path(__file__).parents[1] / "measurements" / "ACCURACY.md").read_text(encoding="utf-8")
    assert "\n".join(section()) in page
