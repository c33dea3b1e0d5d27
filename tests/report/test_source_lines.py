"""Lines of the program are shown from unchanged files of one folder only."""

import os

import pytest

from tb_bottleneck.report.source_lines import MAX_LINE, VARIABLE, add_source, source_folder, source_lines
from tb_bottleneck.schema import bottleneck_pb2 as pb

TEXT = "one\ntwo\n\tthree\nfour \x1b[31m\nfive\nsix\n"


def place(folder, name="train.py", line=3, **other):
    facts = os.stat(folder / name)
    known = {"exact": True, "file_bytes": facts.st_size, "file_time_us": facts.st_mtime_ns // 1000}
    return pb.Place(**{"file": name, "line": line, **known, **other})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(TEXT)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "vit.py").write_text(TEXT)
    return tmp_path.resolve()


def test_the_line_is_shown_with_two_around_it(folder):
    assert source_lines(folder, place(folder)) == ["one", "two", "    three", "four [31m", "five"]
    assert source_lines(folder, place(folder, line=1)) == ["one", "two", "    three"]
    assert source_lines(folder, place(folder, line=6)) == ["four [31m", "five", "six"]
    assert source_lines(folder, place(folder, "models/vit.py")) != []
    (folder / "long.py").write_text("x" * 5_000)
    assert [len(line) for line in source_lines(folder, place(folder, "long.py", 1))] == [MAX_LINE]


@pytest.mark.parametrize(
    "other",
    [
        {"exact": False},
        {"file_bytes": 1},
        {"file_time_us": 1},
        {"file_time_us": 0},
        {"line": 7},
        {"file": "other.py"},
        {"file": "../train.py"},
        {"file": "/etc/passwd"},
        {"file": "models/../train.py"},
        {"file": "train.txt"},
        {"file": "C:train.py"},
        {"file": "models"},
        {"file": "train.py\0"},
    ],
)
def test_another_file_is_not_shown(folder, other):
    (folder / "train.txt").write_text(TEXT)
    assert source_lines(folder, place(folder, **other)) == []


def test_a_link_is_not_followed(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text(TEXT)
    (folder / "link.py").symlink_to(outside)
    assert source_lines(folder, place(folder, "link.py")) == []


def test_lines_that_a_saved_report_brings_are_removed(folder):
    report = pb.Report(findings=[pb.Finding(where=[place(folder, line=9, source=["forged"])])])
    add_source(report, folder)
    assert not report.findings[0].where[0].source
    report.findings[0].where[0].source.append("forged")
    add_source(report, None)
    assert not report.findings[0].where[0].source


def test_the_folder_is_a_setting(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert source_folder({}) == folder
    assert source_folder({VARIABLE: str(folder / "models")}) == folder / "models"
    assert source_folder({VARIABLE: "off"}) is None
    assert source_folder({VARIABLE: str(folder / "none")}) is None
