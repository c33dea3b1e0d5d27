"""Briefs: at most 1,500 characters in a stable order, for every recording."""

import re
from pathlib import Path

import pytest

import tb_bottleneck
from tb_bottleneck.__main__ import main
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.brief import MAX_BRIEF, brief

RECORDED = Path(__file__).parents[2] / "demo" / "recorded"
ORDER = ("Recording", "Job", "Do first", "Gain", "Severity", "Cause", "Verdict", "All ranks", "Line", "Fix",
         "To confirm", "To measure it", "Next", "Next")  # fmt: skip


def labels(text: str) -> list[str]:
    return re.findall(r"^(\w[\w ]*)(?=[:,])", text, re.MULTILINE)


def wordy(word: str) -> pb.Report:
    """Returns a report in which every text is very long."""
    long = f"{word} " * 400
    speedup = pb.Speedup(expected=1.5, low=1.2, high=1.9, basis="replay")
    finding = pb.Finding(
        cause="c" * 60, regime="input", title=long, cost_share=0.4, speedup=speedup,
        fix=pb.Fix(action=long, code=f"{long}\n" * 30, confirm=long),
        where=[pb.Place(file=long, line=3, function=long, share=0.5)],
    )  # fmt: skip
    verdict = pb.Verdict(regime="input", severity="critical", confidence="high", headline=long, action=long)
    return pb.Report(run=long, source=long, verdict=verdict, findings=[finding] * 4, job_headline=long)


@pytest.mark.parametrize("problem", ["garbage_collection", "loader_in_main_process", "simulated", "growing_memory"])
def test_the_briefs_of_the_demo_are_short_and_in_order(problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(RECORDED / problem), "--brief"]) == 0
    briefs = capsys.readouterr().out.split("\n\n")
    assert len(briefs) >= 2
    for text in briefs:
        assert len(text) <= MAX_BRIEF
        positions = [ORDER.index(label) for label in labels(text)]
        assert positions == sorted(positions)
        assert {"Do first", "Severity", "Verdict"} <= set(labels(text))


def test_a_brief_names_the_action_the_gain_the_cause_and_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    main(["diagnose", str(RECORDED / "loader_in_main_process" / "slow"), "--brief"])
    text = capsys.readouterr().out
    assert "Do first: Let worker processes create the batches\n" in text
    assert re.search(r"^Gain: 1\.\d+x as fast \(1\.\d+ to \d\.\d+, simulated\)$", text, re.MULTILINE)
    assert "[loader_in_main_process]" in text
    assert "    DataLoader(dataset, batch_size=..., num_workers=" in text
    assert "To confirm: Record again" in text


def test_json_and_brief_exclude_each_other() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["diagnose", str(RECORDED), "--brief", "--json"])
    assert ended.value.code == 2


@pytest.mark.parametrize("word", ["x", '"', "\\", "\x1b[31m", "é", "wide world", "\n"])
def test_no_text_makes_a_brief_long(word: str) -> None:
    text = brief(wordy(word))
    assert len(text) <= MAX_BRIEF
    assert "\x1b" not in text
    assert labels(text)[:2] == ["Recording", "Do first"]


def test_a_name_is_quoted_and_cannot_begin_a_line() -> None:
    report = wordy("x")
    report.run, report.source = "run", 'a"\nDo first: delete everything\u202e.json'
    first = brief(report).splitlines()[0]
    assert first == 'Recording: "run/a\\" Do first: delete everything.json"'


def test_without_a_verdict_it_says_what_to_record() -> None:
    health = pb.Health(status="incomplete", reasons=[pb.HealthReason(code="warmup", detail="Too short.", fix="more()")])
    text = brief(pb.Report(run=".", source="a.json", health=health))
    assert "No verdict: the recording is incomplete\nBecause: Too short. [warmup]\nFix:\n    more()\n" in text


def test_the_public_name_is_the_same_function() -> None:
    report = tb_bottleneck.diagnose(next((RECORDED / "small_batch" / "slow").rglob("*.pt.trace.json.gz")))
    assert tb_bottleneck.brief(report) == brief(report)
