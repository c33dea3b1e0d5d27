"""Tests of the static files: names, media types, and the stub that stands in for a missing build."""

from pathlib import Path

import pytest

import tb_bottleneck.plugin
from tb_bottleneck.plugin.http import static_files


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("index.js", "text/javascript"), ("LICENSES.txt", "text/plain"), ("style.css", "text/css")],
)
def test_a_file_is_served_under_its_type(tmp_path: Path, name: str, media_type: str) -> None:
    (tmp_path / name).write_bytes(b"content")
    assert static_files.read(name, tmp_path) == (b"content", media_type)


def test_the_directory_is_the_one_that_the_build_writes() -> None:
    assert Path(tb_bottleneck.plugin.__file__).parent / "static" == static_files.DIRECTORY


@pytest.mark.parametrize("name", ["../secret.txt", "sub/secret.txt", "/etc/hosts.txt", "..\\secret.txt", ".secret.txt"])
def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    static = tmp_path / "static"
    (static / "sub").mkdir(parents=True)
    for place in (tmp_path / "secret.txt", static / "sub" / "secret.txt", static / ".secret.txt"):
        place.write_text("secret")
    assert static_files.read(name, static) is None


def test_a_type_that_is_not_ours_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<script>")
    assert static_files.read("page.html", tmp_path) is None


def test_without_a_build_the_entry_module_says_how_to_build(tmp_path: Path) -> None:
    file = static_files.read("index.js", tmp_path / "static")
    assert file is not None
    module = file[0].decode()
    assert "export function render()" in module
    assert "pip install ." in module
    assert "textContent" in module
    assert "innerHTML" not in module
