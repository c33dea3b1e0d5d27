"""Tests the words of reports of runs on the CPU, and that every cause and fact of jobs has its texts."""

import re
from pathlib import Path

import pytest
from helpers.reports import report_of
from simulate.jobs.cases import PLANTERS

from demo.index import read_index
from demo.pairs import RECORDED
from tb_bottleneck import jobs
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.knowledge.catalogue import all_texts
from tb_bottleneck.knowledge.texts import cpu_words, job_texts, on_cpu, words_for
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import render

CPU_TRACES = [
    RECORDED / name / "slow" / pair["slow"]["trace"]
    for name, pair in read_index(RECORDED)["pairs"].items()
    if pair.get("slow", {}).get("device_kind") == "cpu"
]
ABOUT_DEVICES = re.compile(r"\b[Dd]evices?\b(?! +[A-Z])|\bGPUs?\b")


def texts_of(value) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in items for text in texts_of(item)]


@pytest.mark.parametrize("part", cpu_words())
def test_each_replaced_part_is_in_our_texts(part):
    texts = [text for file in all_texts() if "words" not in file for text in texts_of(dict(file))]
    assert any(part in text for text in texts)


@pytest.mark.parametrize("path", CPU_TRACES, ids=lambda path: path.parent.parent.name)
def test_a_report_of_the_demo_names_no_device_but_where_one_would_help(path):
    report = report_of(path)
    assert report.device.kind == "cpu"
    shown = [row.meaning for row in report.account if not Regime(row.regime).needs_device]
    shown += [finding.title for finding in report.findings]
    shown += [text for finding in report.findings for text in (finding.fix.summary, finding.fix.confirm)]
    shown += [row.label for finding in report.findings for row in finding.evidence]
    assert not [text for text in shown if ABOUT_DEVICES.search(text.replace("on a GPU)", ""))]


def test_a_report_of_a_device_keeps_its_words():
    text = "The device is idle while torch dispatches."
    assert words_for("cuda")(text) == text
    assert words_for("cpu")(text) != text


def test_checks_leave_out_what_no_run_on_the_cpu_has():
    report = pb.Report(device=pb.Device(kind="cpu"))
    for regime in REGIMES:
        report.regimes.add(regime=regime, status="clear", title=regime.label)
    clear = render(report)
    assert "Launch overhead" in clear
    assert "Host waits for the device" not in clear
    report.device.kind = "cuda"
    assert "Host waits for the device" in render(report)


def test_words_are_replaced_in_order():
    launch = "The device is idle while torch dispatches operators and launches kernels."
    assert on_cpu(launch) == "Torch dispatches operators, and none of them computes."
    assert on_cpu("Batches are created while the device is idle.") == "Batches are created while no operator computes."


CAUSES = "".join(path.read_text() for path in sorted((Path(jobs.__file__).parent / "causes").glob("*.py")))


OTHERS = {
    "slow_group": "a slow link of which not all ranks were recorded",
    "small_messages": "drawn in tests/jobs/causes/test_exposed_transfers.py",
    "synced_portions": "simulated in tests/jobs/causes/test_exposed_transfers.py",
}


def test_all_causes_have_texts_and_are_simulated():
    assert set(job_texts().causes) == {*PLANTERS, *OTHERS}
    for name, cause in job_texts().causes.items():
        assert cause.regime in REGIMES
        assert f'"{name}"' in CAUSES, "found by a module of causes"


def test_all_facts_have_labels():
    facts = set(re.findall(r'"(\w+)": ', CAUSES)) | set(re.findall(r'facts\["(\w+)"\]', CAUSES))
    assert facts <= set(job_texts().evidence), facts - set(job_texts().evidence)
    assert len(facts) > 10


def test_health_has_a_fix_for_every_reason():
    assert set(job_texts().health) == set(job_texts().health_fix)
