"""The rule for the cache directory, and files that exist completely or not at all."""

import os
from pathlib import Path

import pytest

from tb_bottleneck.base import persistence
from tb_bottleneck.base.persistence import (
    CACHE_VARIABLE,
    atomic_file,
    cache_directory,
    open_regular,
    read_own,
    write_atomically,
)


def test_the_environment_names_the_cache_directory_or_switches_it_off(tmp_path):
    assert cache_directory({CACHE_VARIABLE: str(tmp_path)}) == tmp_path
    assert cache_directory({CACHE_VARIABLE: "OFF"}) is None
    assert cache_directory({CACHE_VARIABLE: "relative/path"}) is None
    assert cache_directory({}) is not None


def test_a_user_without_a_home_directory_has_no_cache(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("no home")

    monkeypatch.setattr("platformdirs.user_cache_path", fails)
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


@pytest.mark.parametrize("follow", [True, False])
def test_only_regular_files_are_opened_and_without_waiting(tmp_path, follow):
    (tmp_path / "file").write_bytes(b"content")
    with open_regular(tmp_path / "file", follow) as file:
        assert file.read() == b"content"
    os.mkfifo(tmp_path / "pipe")  # open() would wait for a writer
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "absent"):
        with pytest.raises(OSError):  # noqa: PT011
            open_regular(tmp_path / name, follow)
    with pytest.raises(OSError):  # noqa: PT011
        open_regular("/dev/zero", follow)


def test_a_link_that_took_the_place_of_a_file_or_folder_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_bytes(b"content")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "link").symlink_to("real/file")
    for path in (tmp_path / "folder/file", tmp_path / "link"):
        with open_regular(path) as file:
            assert file.read() == b"content"
        with pytest.raises(OSError):  # noqa: PT011
            open_regular(path, follow_links=False)


def test_open_files_do_not_accumulate(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").mkdir()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for name in ("pipe", "a/absent", "absent/a"):
        for follow in (True, False):
            with pytest.raises(OSError):  # noqa: PT011
                open_regular(tmp_path / name, follow)
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_others_may_have_written_is_not_read(tmp_path):
    path = tmp_path / "own"
    path.write_bytes(b"content")
    path.chmod(0o600)
    assert read_own(path, 3) == b"con"
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe"):
        with pytest.raises(OSError):  # noqa: PT011
            read_own(tmp_path / name, 3)
    path.chmod(0o620)
    with pytest.raises(OSError, match="another user"):
        read_own(path, 3)


def test_a_file_of_another_user_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "own"
    path.write_bytes(b"content")
    path.chmod(0o600)
    owner = os.geteuid()
    monkeypatch.setattr(persistence.os, "geteuid", lambda: owner + 1)
    with pytest.raises(OSError, match="another user"):
        read_own(path, 3)
