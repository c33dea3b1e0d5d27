"""`python -m demo` reports in one line why it cannot serve, and does not need torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from demo import __main__ as command
from demo import serve
from demo.pairs import PAIRS, RECORDED
from demo.simulated import SIMULATED


def test_without_the_installed_plugin_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "entry_points", lambda group: [])
    assert command.main([]) == 2
    assert "pip install ." in capsys.readouterr().err


def test_without_the_built_tab_it_says_what_builds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch)
    with pytest.raises(serve.CannotServe, match=r"index\.js.*pip install \."):
        serve.check_installation(tmp_path)
    (tmp_path / "index.js").touch()
    serve.check_installation(tmp_path)


def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "tb_bottleneck"

    monkeypatch.setattr(serve, "entry_points", lambda group: [Point])


def test_a_logdir_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "check_installation", lambda: None)
    assert command.main(["serve", "--logdir", str(tmp_path / "nowhere")]) == 2
    message = capsys.readouterr().err
    assert str(tmp_path / "nowhere") in message
    assert "--logdir" in message


def test_an_empty_folder_of_recordings_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(serve, "RECORDED", tmp_path)
    with pytest.raises(serve.CannotServe, match="python -m demo record"):
        serve.check_logdir(tmp_path)
    (tmp_path / "demo.1.pt.trace.json.gz").touch()
    serve.check_logdir(tmp_path)


@pytest.mark.parametrize("arguments", [["--port", "http"], ["--port", "70000"], ["--port"], ["show"], ["--logdir"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m demo" in capsys.readouterr().err


def test_help_tells_recorded_problems_from_others(tmp_path: Path) -> None:
    recorded, _, others = "\n".join(serve.problem_lines(RECORDED)).partition("Not recorded here")
    shown = {pair.name for pair in PAIRS.values() if f"  {pair.name} " in recorded}
    assert shown == {folder.name for folder in RECORDED.iterdir() if folder.is_dir()} - {SIMULATED.name}
    assert all(f" {pair.name}" in others for pair in PAIRS.values() if pair.name not in shown)
    assert "any machine: loader_in_main_process, " in "\n".join(serve.problem_lines(tmp_path))


def test_help_names_every_pair(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("loader_in_main_process", "checkpointing", "oversubscribed_threads"))


def test_serving_imports_neither_torch_nor_tensorboard_before_it_must() -> None:
    code = "import sys; import demo.__main__; assert not {'torch', 'tensorboard', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
