"""Reports that were saved in an earlier version of the schema can still be read."""

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseError

from tb_bottleneck.comparison.runs.compared_run import JudgedRun
from tb_bottleneck.comparison.runs.runs_from_reports import run_from_reports
from tb_bottleneck.report.json_form import as_dict, parse_report
from tb_bottleneck.version import SCHEMA

SCHEMA_1 = Path(__file__).parent / "saved" / "schema_1.json"
"""Output of `diagnose --json` for a recorded demo run: one trace and its telemetry."""


def test_every_field_of_schema_1_is_read():
    for saved in json.loads(SCHEMA_1.read_text())["reports"]:
        report = parse_report(saved)
        assert report.schema == SCHEMA
        assert report.evidence_source == report.witness == saved["witness"]
        assert list(report.window.step_times_ns) == saved["window"]["each_ns"] != []
        assert [as_dict(phase) for phase in report.phases] == saved["stretches"]
        for finding in saved["findings"]:
            finding["where"] = []  # added later, without a new schema
            finding["fix"]["action"] = ""
        saved["verdict"]["action"] = ""
        unchanged = saved.keys() - {"schema", "stretches", "window"}
        assert {name: as_dict(report)[name] for name in unchanged} == {name: saved[name] for name in unchanged}


def test_a_report_of_the_current_schema_is_read_as_it_is():
    report = parse_report({"schema": SCHEMA, "evidence_source": "trace", "run": "r"})
    assert (report.evidence_source, report.witness, report.run) == ("trace", "", "r")
    with pytest.raises(ParseError):
        parse_report({"schema": SCHEMA, "stretches": []})


def test_a_run_can_be_compared_with_saved_reports_of_schema_1():
    baseline = run_from_reports("baseline", SCHEMA_1.read_bytes())
    assert isinstance(baseline, JudgedRun)
    assert [report.evidence_source for report in baseline.reports] == ["trace"]
    assert [report.evidence_source for report in baseline.telemetry_reports] == ["telemetry"]
