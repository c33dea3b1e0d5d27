"""Tests of the help of every command: width, examples, and messages about invalid values."""

import argparse

import pytest

from tb_bottleneck.__main__ import _COMMANDS, argument_parser


def parsers() -> dict[str, argparse.ArgumentParser]:
    (group,) = (one for one in argument_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(group.choices)


def test_every_command_is_there() -> None:
    assert len(parsers()) == len(_COMMANDS)


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
        (["sweep-loader", "m:f", "--workers", "few"], "'few': must be whole numbers from 0 to 1024"),
        (["sweep-loader", "m:f", "--prefetch", "0"], "'0': must be whole numbers from 1"),
        (["sweep-loader", "m:f", "--seconds-per-setting", "long"], "'long' must be a number of seconds"),
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
