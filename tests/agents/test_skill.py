"""The skill is complete, and installing it keeps what a user has changed."""

import re
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.agents.skill import MANIFEST, NAME, pages


def test_the_first_page_has_a_name_and_a_description() -> None:
    head = pages()["SKILL.md"].decode().split("---\n")[1]
    facts = dict(line.split(": ", 1) for line in head.splitlines())
    assert facts["name"] == NAME
    assert 50 < len(facts["description"]) <= 1024


def test_every_page_is_linked_and_there() -> None:
    links = set(re.findall(r"\]\((\w+\.md)\)", pages()["SKILL.md"].decode()))
    assert links == pages().keys() - {"SKILL.md"}


def test_it_prints_the_first_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == pages()["SKILL.md"].decode()


def test_it_installs_all_pages_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", "--install", str(tmp_path / "skills")]) == 0
    folder = tmp_path / "skills" / NAME
    assert {path.name: path.read_bytes() for path in folder.glob("*.md")} == pages()
    capsys.readouterr()
    assert main(["skill", "--install", str(tmp_path / "skills")]) == 0
    assert "is up to date" in capsys.readouterr().out


def test_a_changed_page_is_kept_without_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["skill", "--install", str(tmp_path)])
    changed = tmp_path / NAME / "record.md"
    changed.write_text("our way")
    (tmp_path / NAME / "confirm.md").unlink()
    assert main(["skill", "--install", str(tmp_path)]) == 2
    assert "record.md was changed" in capsys.readouterr().err
    assert changed.read_text() == "our way"
    assert not (tmp_path / NAME / "confirm.md").exists(), "nothing is written"
    assert main(["skill", "--install", str(tmp_path), "--force"]) == 0
    assert changed.read_bytes() == pages()["record.md"]


def test_a_page_of_another_version_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = dict.fromkeys(pages(), b"old")
    with monkeypatch.context() as patched:
        patched.setattr("tb_bottleneck.agents.skill.pages", lambda: old)
        main(["skill", "--install", str(tmp_path)])
    assert main(["skill", "--install", str(tmp_path)]) == 0
    assert (tmp_path / NAME / "SKILL.md").read_bytes() == pages()["SKILL.md"]


@pytest.mark.parametrize("content", ["[]", "no json", '{"record.md": 7}'])
def test_a_broken_manifest_counts_as_none(tmp_path: Path, content: str) -> None:
    main(["skill", "--install", str(tmp_path)])
    (tmp_path / NAME / MANIFEST).write_text(content)
    (tmp_path / NAME / "record.md").write_text("our way")
    assert main(["skill", "--install", str(tmp_path)]) == 2
