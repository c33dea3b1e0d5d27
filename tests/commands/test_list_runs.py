"""`tb-bottleneck list`, and the table before several reports."""

import io
import json
import os

import pytest
from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.__main__ import main
from tb_bottleneck.commands import diagnose
from tb_bottleneck.commands.list_runs import COLUMN_NAMES, add
from tb_bottleneck.commands.terminal import stdout_layout
from tb_bottleneck.text.table import COLUMNS
from tb_bottleneck.text.table_rows import SORTS

SLOW, BUSY = repeated(9, loader="######....", gpu="......####"), repeated(9, loader="#.........", gpu=".#########")


@pytest.fixture
def logdir(tmp_path):
    for name, run in (("busy", BUSY), ("slow", SLOW)):
        folder = tmp_path / name
        folder.mkdir()
        recorded(folder, run)
    return tmp_path


def test_the_recording_with_most_to_gain_comes_first(logdir, capsys):
    assert main(["list", str(logdir)]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["Training", "Severity"]
    first, second = (line.split()[0] for line in lines if not line.startswith(" "))
    assert (first.split("/")[0], second.split("/")[0]) == ("slow", "busy")
    assert any("Waiting for data: Let worker processes create the batches" in line for line in lines)


def test_json(logdir, capsys):
    assert main(["list", str(logdir), "--json", "--sort", "name"]) == 0
    assert [row["run"] for row in json.loads(capsys.readouterr().out)["trainings"]] == ["busy", "slow"]


def test_an_unreadable_recording_is_a_row_a_message_and_1(logdir, capsys):
    broken = logdir / "broken.pt.trace.json"
    broken.write_text("{")
    os.utime(broken, (0, 0))
    assert main(["list", str(logdir)]) == 1
    out, err = capsys.readouterr()
    assert "no verdict: unreadable" in out
    assert err == "tb-bottleneck: broken.pt.trace.json is unreadable\n"


def test_the_name_of_a_file_does_not_control_the_terminal(tmp_path, capsys):
    broken = tmp_path / "a\x1b[2J.pt.trace.json"
    broken.write_text("{")
    os.utime(broken, (0, 0))
    for command in ("list", "diagnose"):
        assert main([command, str(tmp_path)]) == 1
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err
        assert "a[2J" in out
        assert "a[2J" in err


def test_several_reports_come_after_their_table(logdir, capsys, monkeypatch):
    assert main(["diagnose", str(logdir)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Training")
    assert out.index("To gain") < out.index(" confidence: ")
    assert "tb-bottleneck diagnose FILE" not in out
    monkeypatch.setattr(diagnose, "MANY", 1)
    main(["diagnose", str(logdir)])
    assert "To see one: tb-bottleneck diagnose FILE." in capsys.readouterr().out
    assert main(["diagnose", str(logdir / "slow")]) == 0
    assert "To gain" not in capsys.readouterr().out
    assert main(["diagnose", str(logdir), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["reports"]) == 2


def test_every_sort_is_offered():
    import argparse

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    (sort,) = (one for one in commands.choices["list"]._actions if one.dest == "sort")
    assert set(sort.choices) == set(SORTS)
    assert list(COLUMN_NAMES) == list(COLUMNS)


@pytest.mark.parametrize(
    ("is_terminal", "variables", "styled"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        (False, {"TERM": "xterm-256color"}, False),
    ],
)
def test_styles_depend_on_the_terminal(monkeypatch, is_terminal, variables, styled):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setattr("sys.stdout", Terminal(is_terminal))
    layout = stdout_layout()
    assert (layout.width, layout.styled) == (72, styled)


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal
