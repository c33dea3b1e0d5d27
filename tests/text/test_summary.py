"""The summary of a report: at most 30 lines, the answer first."""

from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.summary import MAX_SUMMARY, summary
from tb_bottleneck.text.terminal import Layout
from tests.text.test_brief import wordy

RECORDED = Path(__file__).parents[2] / "demo" / "recorded"
PROBLEMS = sorted(path.name for path in RECORDED.iterdir() if path.is_dir() and path.name != "simulated")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["diagnose", *arguments])
    return capsys.readouterr().out


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_training_of_the_demo_has_at_most_30_lines(problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in sorted((RECORDED / problem).iterdir()):
        lines = printed(capsys, str(folder)).splitlines()
        assert len(lines) <= MAX_SUMMARY + 2  # an empty line, and how to see everything
        assert "diagnose --full " in lines[-1]


def test_the_lines_are_the_answer_the_account_the_place_the_code_and_how_to_measure_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, str(RECORDED / "loader_in_main_process" / "slow"))
    order = (
        "Let worker processes create the batches: about ",
        "Critical, ",
        "  Waiting for data ",
        "[loader_in_main_process], ",
        "   in demo/",
        "       DataLoader(dataset, batch_size=..., num_workers=",
        "   To measure it: tb-bottleneck try workers=",
    )
    places = [text.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("word", ["word", "a_word_without_any_end", "\x1b[31m<b>"])
def test_long_texts_leave_blocks_out_and_the_answer_in(word: str, width: int) -> None:
    report = wordy(word)
    text = summary(report, Layout(width))
    if width == 100:
        assert text.count("\n") <= MAX_SUMMARY
    assert "\x1b" not in text
    assert "[cccc" in text


def test_without_a_verdict_the_reasons_and_fixes_are_shown() -> None:
    reason = pb.HealthReason(code="truncated", detail="The file ends early.", fix="prof.stop()  # before the end")
    report = pb.Report(source="t.json", health=pb.Health(status="unreadable", reasons=[reason]))
    text = summary(report)
    assert "This file cannot be read as a trace." in text
    assert "The file ends early. [truncated]" in text
    assert "fix: prof.stop()" in text


def test_a_change_that_gains_nothing_is_not_next() -> None:
    report = wordy("word")
    for finding in report.findings[1:]:
        finding.speedup.expected = 1.0
    assert "Next:" in summary(wordy("word"))
    assert "Next:" not in summary(report)


def test_everything_is_still_printed_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(RECORDED / "loader_in_main_process" / "slow")
    full = printed(capsys, folder, "--full")
    assert "What was checked" in full
    assert len(full.splitlines()) > 2 * MAX_SUMMARY
