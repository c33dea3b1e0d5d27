"""What `python -m demo` prints: the list of problems, the best ones to open, and how to stop."""

from pathlib import Path

import pytest

from demo import __main__ as command
from demo import serve
from demo.guide import BY_PROBLEM, OVERVIEW

URL = "http://localhost:6006/"


@pytest.mark.parametrize("is_default", [True, False])
def test_few_lines_lead_to_the_list_and_name_the_best_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], is_default: bool
) -> None:
    monkeypatch.setattr(serve, "check_installation", lambda: None)
    monkeypatch.setattr(serve, "start", lambda logdir, host, port: URL)
    monkeypatch.setattr(serve, "wait_for_the_end", lambda: None)
    assert command.main([] if is_default else ["serve", "--logdir", str(tmp_path)]) == 0
    first, *best, last = capsys.readouterr().out.splitlines()
    assert first.endswith(f"{URL}{BY_PROBLEM if is_default else OVERVIEW}")
    assert len(best) == (1 if is_default else 0)
    assert all("loader_in_main_process (1.7x)" in line for line in best)
    assert last == "Press Ctrl-C to quit."
