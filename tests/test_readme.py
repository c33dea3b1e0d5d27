"""What README tells people to type: schedules that end, commands and paths that are there."""

import re
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TOLD = [README, ROOT / "tb_bottleneck/commands/diagnose.py", ROOT / "frontend/src/app/empty.tsx"]
TOLD += sorted((ROOT / "tb_bottleneck/knowledge/advice").glob("*.toml"))


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_a_schedule_that_people_copy_ends_after_one_recording(path):
    """Without `repeat` torch records in cycles to the end of the training, and writes a file for each."""
    schedules = re.findall(r"schedule\([^()]*active=[^()]*\)", path.read_text(encoding="utf-8"))
    assert all("repeat=1" in one for one in schedules), schedules


def test_every_command_that_is_named_is_one():
    named = set(re.findall(r"tb-bottleneck ([a-z][a-z-]+)", README.read_text(encoding="utf-8")))
    assert {"diagnose", "compare", "what-if", "run"} <= named
    for command in sorted(named):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command


def test_every_file_that_is_linked_is_there():
    linked = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert len(linked) > 10
    assert [link for link in linked if not (ROOT / link).exists()] == []
