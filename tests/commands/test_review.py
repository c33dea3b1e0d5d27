"""Tests of `tb-bottleneck review`."""

import json

import pytest
from helpers.draw import drawn

from demo.pairs import RECORDED
from tb_bottleneck.__main__ import main
from tb_bottleneck.schema.bottleneck_pb2 import Finding, Report
from tb_bottleneck.schema.review_pb2 import Ledger
from tb_bottleneck.sources.logdir import RecordingFile
from tb_bottleneck.text.review import render

SLOW = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""
NAME = "host_1.17.pt.trace.json"


@pytest.fixture
def logdir(tmp_path, monkeypatch):
    for run, scale in (("team/slow", 1000), ("team/fast", 500)):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / NAME).write_text(json.dumps(drawn(SLOW, scale)))
    monkeypatch.setenv("TB_BOTTLENECK_REVIEWER", "Ana")
    return str(tmp_path)


def cause_in(logdir, capsys):
    main(["diagnose", logdir, "--json"])
    return json.loads(capsys.readouterr().out)["reports"][0]["findings"][0]["cause"]


def test_notes_are_written_and_shown_with_the_ledger(logdir, capsys):
    cause = cause_in(logdir, capsys)
    assert main(["review", logdir]) == 0
    assert capsys.readouterr().out.startswith("2 of 2 findings open in 2 trainings\n")
    for words in (
        ["accept", f"team/fast/{NAME}", "--cause", cause, "--because", "a test \x1b[31m"],
        ["fixed", f"{logdir}/team/slow", "--cause", cause, "--in", "team/fast", "--as", "Ben"],
        ["comment", "team/slow", "the loader is slow"],
    ):
        assert main(["review", logdir, *words]) == 0, words
    assert "Ana" not in capsys.readouterr().err
    assert main(["review", logdir]) == 0
    out = capsys.readouterr().out
    assert out.startswith("0 of 2 findings open in 2 trainings\n")
    assert f"[accepted by Ana (a test [31m)] {cause}" in out
    assert "[fixed in team/fast by Ben]" in out.replace("\n    ", " ")
    assert "Ana: the loader is slow" in out
    assert "2.0x (2.0 to 2.0) measured" in out[out.index("Ledger of fixes") :]


def test_the_gain_of_a_stated_fix_takes_the_place_of_the_predicted_one(logdir, capsys):
    cause = cause_in(logdir, capsys)
    assert main(["review", logdir, "fixed", "team/slow", "--cause", cause, "--in", "team/fast"]) == 0
    assert "measured: 2.000x" in capsys.readouterr().out
    main(["diagnose", f"{logdir}/team/slow", "--json"])
    finding = json.loads(capsys.readouterr().out)["reports"][0]["findings"][0]
    assert (finding["speedup"]["basis"], finding["speedup"]["expected"]) == ("trial", 2.0)
    assert finding["speedup"]["predicted"] > 1
    assert finding["speedup"]["assumes"] == "the fix in team/fast"
    assert main(["review", logdir, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["fixed_in"], row["measured"]["speedup"]) == ("team/fast", 2.0)


def test_a_note_about_a_finding_that_the_run_does_not_have_is_written_with_a_warning(logdir, capsys):
    cause = cause_in(logdir, capsys)
    assert main(["review", logdir, "accept", "team/slow", "--cause", cause, "--because", "a test"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["review", logdir, "accept", "team/slow", "--cause", "scalar_reads", "--because", "a test"]) == 0
    said = f"team/slow does not have the finding scalar_reads now; its findings are {cause}"
    assert said in capsys.readouterr().err


def test_the_name_of_the_reviewer_is_never_taken_from_the_system(logdir, capsys, monkeypatch):
    monkeypatch.delenv("TB_BOTTLENECK_REVIEWER")
    assert main(["review", logdir, "comment", "team/slow", "Ben"]) == 2
    assert "--as NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["comment", "team/slwo", "Ben"], "there is team/slow, team/fast"),
        (["accept", "team/slow", "--cause", "unknwon", "--because", "x"], "no cause is named 'unknwon'"),
        (["accept", "team/slow", "--because", " "], "the text of `accept` is empty"),
        (["fixed", "team/slow", "--in", "team/slow"], "is the run that has it"),
        (["comment", "team/slow", "x" * 2001], "the maximum is 2000"),
    ],
)
def test_wrong_names_are_one_line_that_says_what_exists_and_2(logdir, capsys, words, said):
    assert main(["review", logdir, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_logdir_that_cannot_be_written_to_or_does_not_exist(logdir, tmp_path, capsys):
    assert main(["review", f"{logdir}s"]) == 2
    assert "no such directory" in capsys.readouterr().err
    (tmp_path / ".tb_bottleneck_review").write_text("a file")
    assert main(["review", logdir, "comment", "team/slow", "Ben"]) == 1
    assert "could not be written to" in capsys.readouterr().err


def test_a_logdir_spec_is_accepted_and_a_note_stays_in_one_directory(logdir, tmp_path, capsys):
    spec = f"a:{tmp_path}/team/slow,b:{tmp_path}/team"
    assert main(["review", spec, "fixed", "b/slow", "--in", "b/fast"]) == 0
    assert (tmp_path / "team" / ".tb_bottleneck_review").is_dir()
    assert main(["review", spec, "accept", "a", "--because", "x"]) == 0
    assert main(["review", spec, "fixed", "a", "--in", "b/fast"]) == 2
    assert "b/fast is not in a" in capsys.readouterr().err
    assert main(["review", spec]) == 0
    out = capsys.readouterr().out
    assert "[fixed in b/fast by Ana]" in out


def test_a_finding_of_several_recordings_of_one_training_is_counted_once(capsys):
    """The trace and the telemetry of one training have the same findings, told by the source that is trusted."""
    assert main(["review", str(RECORDED / "checkpointing" / "slow")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 of 1 finding open in 1 training\n")
    assert out.count("checkpointing: ") == 1


def test_of_many_trainings_without_notes_the_costliest_are_shown():
    def training(number):
        recording = RecordingFile(f"/run{number}/a", f"run{number}", "a", 1, 1)
        return [(recording, Report(findings=[Finding(cause="scalar_reads", cost_share=number / 100)]))]

    text = render([training(number) for number in range(30)], {}, Ledger())
    assert "30 of 30 findings open in 30 trainings" in text
    assert "run29/a" in text
    assert "run5/a" not in text
    assert text.endswith("9 more trainings have findings and no note: `tb-bottleneck list` shows them.\n")


def test_findings_about_the_memory_count():
    report = Report()
    report.memory.findings.add(cause="rising_host_memory", title="It rises", severity="warning", headline="It rises.")
    report.memory.findings.add(cause="pinned_memory_high", severity="info", headline="")
    text = render([[(RecordingFile("/run/a", "run", "a", 1, 1), report)]], {}, Ledger())
    assert "1 of 1 finding open in 1 training" in text
    assert "[open] rising_host_memory: It rises" in text
    assert "pinned" not in text


def test_a_fix_in_a_run_with_other_work_is_written_with_a_warning(logdir, tmp_path, capsys):
    cause = cause_in(logdir, capsys)
    drawing = SLOW.rstrip() + "\n    op      ....######....######....######"
    for run, operator in (("team/a", "aten::linear"), ("team/b", "aten::linear"), ("team/c", "aten::embedding")):
        trace = drawn(drawing, 1000)
        for event in trace["traceEvents"]:
            if event["cat"] == "cpu_op":
                event["name"] = operator
                event["args"] = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
        (tmp_path / run).mkdir()
        (tmp_path / run / NAME).write_text(json.dumps(trace))
    assert main(["review", logdir, "fixed", "team/a", "--in", "team/b"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["review", logdir, "fixed", "team/a", "--cause", cause, "--in", "team/c"]) == 0
    said = capsys.readouterr()
    assert "measured" not in said.out
    assert f"fixed team/a, {cause}: written to" in said.out
    assert "is team/c the run with the fix? Its work is not that of team/a." in said.err
