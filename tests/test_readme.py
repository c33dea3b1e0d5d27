"""Documentation for users: schedules end, and commands, files and sections exist."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import causes_page
import pytest

from demo.pairs import RECORDED
from tb_bottleneck.__main__ import argument_parser, main
from tb_bottleneck.base.regime import Regime

ROOT = Path(__file__).resolve().parent.parent
DOCS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "tb_bottleneck" / "docs").rglob("*.md")),
    ROOT / "demo" / "README.md",
    ROOT / "frontend" / "README.md",
    ROOT / "tests" / "bench" / "README.md",
    ROOT / "tb_bottleneck" / "plugin" / "http_api.md",
]
WITH_SCHEDULES = [
    *DOCS,
    ROOT / "tb_bottleneck/commands/diagnose.py",
    *sorted((ROOT / "tb_bottleneck/knowledge/advice").glob("*.toml")),
    *sorted((ROOT / "frontend/src").rglob("empty*.tsx")),
]


@pytest.mark.parametrize("path", WITH_SCHEDULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_schedule_that_users_copy_ends_after_one_recording(path):
    """Without `repeat` torch records in cycles to the end of the training, and writes a file for each."""
    schedules = re.findall(r"schedule\([^()]*active=[^()]*\)", path.read_text(encoding="utf-8"))
    assert all("repeat=1" in schedule for schedule in schedules), schedules


def test_the_named_commands_exist():
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS)
    named = set(re.findall(r"^    tb-bottleneck ([a-z][a-z-]+)|`tb-bottleneck ([a-z][a-z-]+)", text, re.MULTILINE))
    commands = {command for pair in named for command in pair if command}
    assert {"diagnose", "compare", "what-if", "run", "capture", "doctor", "try"} <= commands
    for command in sorted(commands):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command


def test_the_readme_lists_every_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^    tb-bottleneck ([a-z][a-z-]+)", readme, re.MULTILINE)
    actions = argument_parser()._actions
    (commands,) = (action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    assert set(listed) == set(commands)


def test_the_readme_quotes_what_a_recording_of_the_demo_says(capsys):
    (quoted,) = re.findall(r'"([^"]* faster [(][^"]*)"', (ROOT / "README.md").read_text(encoding="utf-8"))
    main(["diagnose", "--no-cache", str(RECORDED / "loader_in_main_process" / "slow")])
    assert " ".join(quoted.split()) in capsys.readouterr().out


def test_the_glossary_defines_every_regime():
    glossary = (ROOT / "tb_bottleneck/docs/glossary.md").read_text(encoding="utf-8")
    assert [regime for regime in Regime if f"`{regime}`" not in glossary] == []


def test_the_glossary_has_the_title_of_every_regime():
    glossary = (ROOT / "tb_bottleneck/docs/glossary.md").read_text(encoding="utf-8")
    assert [regime for regime in Regime if f"| {regime.label} |" not in glossary and regime.in_account] == []


def test_every_cause_is_listed_with_its_title():
    assert causes_page.PAGE.read_text(encoding="utf-8") == causes_page.page(), "python tests/causes_page.py --write"


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_sections(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, section = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if section:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert section in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, link


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_of_the_package_that_are_named_exist(path):
    for name in re.findall(r"`((?:tb_bottleneck|tests|frontend|demo)/[\w./-]+)`", path.read_text(encoding="utf-8")):
        if not re.search(r"[A-Z]{4,}\.", name) and "NAME" not in name and "REGIME" not in name:
            assert (ROOT / name).exists(), name


def test_the_example_of_the_json_page_runs(tmp_path):
    """It prints one block per recording."""
    page = (ROOT / "tb_bottleneck" / "docs" / "json.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code.strip().splitlines()) <= 16
    script = tmp_path / "example.py"
    script.write_text(code)
    recording = ROOT / "demo" / "recorded" / "checkpointing"
    done = subprocess.run(
        [sys.executable, str(script), str(recording)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "interruption" in done.stdout
    assert "times as fast" in done.stdout
