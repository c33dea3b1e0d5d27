"""Names that control a terminal reach no output of any command, and a file that is no trace gives one line."""

import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.draw import drawn

from tb_bottleneck.__main__ import main

HOSTILE = "\x1b[31m\x9b2J\u202e"
RUN = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    op      ....##........##........##....
    launch  ....||........||........||....
    gpu     .....aabbb.....aabbb.....aabbb
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    trace = drawn(RUN, 1000, deviceProperties=[{"id": 0, "name": f"device{HOSTILE}"}])
    for event in trace["traceEvents"]:
        if event.get("cat") in ("kernel", "cpu_op"):
            event["name"] = f"{HOSTILE}{event['name']}"
    for name in ("a", "b"):
        folder = tmp_path / f"{name}{HOSTILE}"
        folder.mkdir()
        (folder / f"{name}{HOSTILE}.pt.trace.json").write_text(json.dumps(trace))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / f"c{HOSTILE}.pt.trace.json").write_text("no trace")
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (1e9, 1e9))
    (tmp_path / f"link{HOSTILE}").symlink_to("/")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        "diagnose {top} --fail-over input=0.01",
        "diagnose {top} --json",
        "diagnose {top} --brief",
        "list {top}",
        "list {top} --json",
        "review {top}",
        "tree {a} --by operator",
        "tree {a} --json",
        "tree {a} --by kernel",
        "tree {a} --against {b}",
        "tree {a} --against {b} --json",
        "tables {a} --of operators",
        "tables {a} --of kernels",
        "tables {a} --json",
        "tables {a} --kernel none",
        "compare {a} {b} --fail-slower 0",
        "compare {a} {top}/broken --fail-slower 0",
        "what-if {a} --workers 4",
        "what-if {top}/none",
    ],
)
def test_no_output_controls_the_terminal(logdir: Path, capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    places = {"top": logdir, **{name: logdir / f"{name}{HOSTILE}" for name in "ab"}}
    assert main([part.format(**places) for part in arguments.split(" ")]) in (0, 1, 2)
    shown = "".join(capsys.readouterr())
    assert shown
    assert {each for each in shown if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")} <= {"\n"}


def test_a_file_that_is_no_trace_is_a_sentence(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", str(logdir / "broken")]) == 1
    output, error = capsys.readouterr()
    assert output == ""
    assert error.splitlines()[-1].startswith("tb-bottleneck: ")
    assert "traceEvents" in error
