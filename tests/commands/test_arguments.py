"""Tests the help of every command, messages about invalid values, and the argument RUN (a file or a directory)."""

import argparse
import os

import pytest
from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.__main__ import _MODULES, argument_parser
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import RunFiles, recordings_of
from tb_bottleneck.sources.logdir import Listing, RecordingFile


def parsers() -> dict[str, argparse.ArgumentParser]:
    (group,) = (one for one in argument_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(group.choices)


def test_every_command_is_there() -> None:
    assert len(parsers()) == len(_MODULES)


@pytest.mark.parametrize("name", sorted(parsers()))
def test_help_has_examples_and_describes_each_option(name: str) -> None:
    parser = parsers()[name]
    assert f"\nexamples:\n  tb-bottleneck {name} " in f"\n{parser.epilog}"
    for action in parser._actions:
        assert action.help, f"{action.dest} has no help"


@pytest.mark.parametrize("name", sorted(parsers()))
def test_prose_is_as_wide_as_the_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help of 250 characters on one line was cut in the middle of words."""
    monkeypatch.setenv("COLUMNS", "60")
    description = parsers()[name].description
    assert description is not None
    assert max(map(len, description.splitlines())) <= 60


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["try", "workers=4", "--fail-slower", "much", "--", "python", "x.py"], "expected a share such as 3%"),
        (["diagnos", "runs"], "did you mean diagnose?"),
        (["diagnose", "runs", "--jsn"], "unrecognized arguments: --jsn; did you mean --json?"),
        (["what-if", "run", "--precision", "fb16"], "did you mean "),
        (["list", "runs", "--sort", "gian"], "did you mean gain?"),
        (["what-if", "run", "--workers", "-3"], "'-3': must be a whole number from 1"),
    ],
)
def test_a_wrong_word_or_number_gives_a_message_with_the_right_ones(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message was "invalid _counts value", with the name of an internal function."""
    with pytest.raises(SystemExit) as exit_:
        argument_parser().parse_args(words)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_a_word_that_is_like_none_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        argument_parser().parse_args(["qqqqqq"])
    message = capsys.readouterr().err
    assert "invalid choice" in message
    assert "did you mean" not in message


DRAWING = repeated(9, op="##..", gpu="..##")


def test_a_file_is_itself(tmp_path):
    path = recorded(tmp_path, DRAWING)
    assert recordings_of(path) == RunFiles((path,))


def test_a_directory_is_its_recordings_the_oldest_first(tmp_path):
    first, second = recorded(tmp_path, DRAWING), recorded(tmp_path, DRAWING)
    os.utime(second, (1, 1))
    assert recordings_of(str(tmp_path)) == RunFiles((second, first))


def test_a_directory_of_several_runs_names_them(tmp_path):
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        recorded(tmp_path / run, DRAWING)
    with pytest.raises(NotFound, match=r"contains 2 runs \(one, two\); name one of them"):
        recordings_of(str(tmp_path))


def test_a_directory_without_a_trace_says_what_was_looked_for(tmp_path):
    with pytest.raises(NotFound, match=r"\*\.pt\.trace\.json"):
        recordings_of(str(tmp_path))


def test_telemetry_alone_is_reported_as_no_trace(tmp_path, monkeypatch):
    events = tmp_path / "events.out.tfevents.1.2.0"
    events.write_bytes(b"")
    listing = Listing((RecordingFile(str(events), ".", events.name, 0, 0),), ())
    monkeypatch.setattr("tb_bottleneck.sources.logdir.scan", lambda path: listing)
    with pytest.raises(NotFound, match="its telemetry alone cannot be replayed"):
        recordings_of(str(tmp_path))
    assert recordings_of(str(tmp_path), needs_trace=False).telemetry == (str(events),)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(NotFound, match="nowhere"):
        recordings_of(str(tmp_path / "nowhere"))
