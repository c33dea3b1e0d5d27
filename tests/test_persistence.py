"""The rule for the cache directory, and files that exist completely or not at all."""

from pathlib import Path

import pytest

from tb_bottleneck import persistence
from tb_bottleneck.persistence import CACHE_VARIABLE, atomic_file, cache_directory, write_atomically


def test_the_environment_names_the_cache_directory_or_switches_it_off(tmp_path):
    assert cache_directory({CACHE_VARIABLE: str(tmp_path)}) == tmp_path
    assert cache_directory({CACHE_VARIABLE: "OFF"}) is None
    assert cache_directory({CACHE_VARIABLE: "relative/path"}) is None
    assert cache_directory({}) is not None


def test_a_user_without_a_home_directory_has_no_cache(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("no home")

    monkeypatch.setattr(persistence.platformdirs, "user_cache_path", fails)
    assert cache_directory({}) is None


def test_a_file_is_replaced_with_the_given_permissions(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    write_atomically(path, b"new", mode=0o600)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_remains_after_an_error(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        write_atomically(Path(tmp_path / "missing" / "file"), b"")
