"""Tests of the progress bar: drawn on a terminal, and otherwise not even imported."""

import subprocess
import sys
import threading

import pytest

from tb_bottleneck.commands.terminal import progress_bar


def test_without_a_terminal_nothing_is_drawn_or_imported():
    """The import for drawing takes 45 ms, a tenth of the diagnosis of a small recording."""
    script = (
        "import sys\nfrom tb_bottleneck.commands.terminal import progress_bar\n"
        "with progress_bar() as begin: begin('one')(1, 2)\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_person_sees_one_line_at_a_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    before = set(threading.enumerate())
    with progress_bar() as begin:
        begin("[bold]first.json")(1, 2)
        begin("second.json")(2, 2)
    for drawing in set(threading.enumerate()) - before:
        drawing.join()  # rich does not wait for its thread to end
    drawn = capsys.readouterr().err
    assert "second.json" in drawn
