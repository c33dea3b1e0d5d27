"""Diagnoses labelled public recordings, if the environment variable TB_BOTTLENECK_TRACES names their folder.

The folder contains NAME.json.gz files and labels.json: for each file the true answer, other right answers, and answers
that would be wrong advice. Labels are judgements; those of low confidence are read but not counted.
"""

import json
import os
from pathlib import Path

import pytest
from helpers.reports import report_of
from simulate.cases import answer_of

FOLDER = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
LABELS = json.loads((FOLDER / "labels.json").read_text()) if (FOLDER / "labels.json").exists() else []
pytestmark = pytest.mark.skipif(not LABELS, reason="TB_BOTTLENECK_TRACES names no folder with labels.json")


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label["name"])
def test_a_public_recording_is_judged_right(label):
    report = report_of(FOLDER / f"{label['name']}.json.gz")
    answer = answer_of(report)
    assert report.health.status != "unreadable"
    assert answer not in label["never"], label["why"]
    if report.account:
        assert sum(row.share for row in report.account) == pytest.approx(1)
    assert_possible(report)
    if label["confidence"] != "low":
        right = answer in (label["truth"], *label["also"])
        assert right or (label["truth"].startswith("incomplete") and answer.startswith("incomplete")), label["why"]


def assert_possible(report):
    """No device does more than it can, and what is not known is absent."""
    found = report.efficiency
    for field in ("mfu", "hfu", "tensor_share", "goodput"):
        assert 0 <= getattr(found, field) <= 1, field
    if found.HasField("mfu") and found.HasField("hfu"):
        assert 0 < found.mfu <= found.hfu * (1 + 1e-9)
    for note in found.notes:
        assert found.HasField(note.field) == bool(note.basis) != bool(note.because)
    assert report.verdict.severity == "none" or {item.kind for item in report.headroom} <= {"layout"}
    assert all(0 <= item.share <= 1 for item in report.headroom)
